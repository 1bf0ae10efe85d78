import { sagaRules } from './rules-contract.ts';
import { memoryGround } from '../testing/saga-ground.ts';

sagaRules('in memory', async () => memoryGround());
