/**
 * Validates every example and runs its tests with the real google provider, where it can be fetched; where it cannot,
 * that is said in one line and is no failure. Nothing is created: the tests mock what the provider would do.
 */
import { CASES } from '../plans.ts';
import { terraform } from '../terraform.ts';

async function tried(): Promise<void> {
  const there = await terraform('real');
  if (there === undefined) {
    console.log('skipped: terraform is not on the path');
    return;
  }
  try {
    for (const example of new Set(Object.values(CASES).map((one) => one.example))) {
      const folder = `examples/${example}`;
      const init = await there.run(folder, 'init', '-backend=false', '-input=false', '-no-color');
      if (
        init.code !== 0 &&
        /could not (connect|query)|no such host|Failed to query available provider/i.test(init.output)
      ) {
        console.log('skipped: the google provider cannot be fetched from here');
        return;
      }
      const steps = [init.code === 0 ? undefined : init];
      for (const args of [['validate'], ['test']] as const) {
        if (init.code === 0) steps.push(await there.run(folder, ...args, '-no-color'));
      }
      for (const step of steps) {
        if (step === undefined) continue;
        console.log(step.output);
        if (step.code !== 0) process.exitCode = 1;
      }
    }
  } finally {
    await there.close();
  }
}

await tried();
