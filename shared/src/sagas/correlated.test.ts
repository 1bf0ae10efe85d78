import { memoryGround } from '../testing/saga-ground.ts';
import { choreographyContract } from './choreography-contract.ts';

choreographyContract('in memory', async () => memoryGround());
