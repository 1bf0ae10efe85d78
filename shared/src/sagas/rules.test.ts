import { sagaRules } from './rules-contract.ts';
import { memoryGround } from './testing/ground.ts';

sagaRules('in memory', async () => memoryGround());
