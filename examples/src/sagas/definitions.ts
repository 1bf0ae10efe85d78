/** What the function `saga` of `npm start` runs (`SAGA_MODULE`): the default export is the list of definitions. */
import { expense } from './expense.ts';
import { foodOrder } from './food-order.ts';

export default [foodOrder, expense];
