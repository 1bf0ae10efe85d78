/**
 * Whether the longest pipeline still makes progress on a machine that is far too small for it. Ten processes that do
 * nothing but take processor time run beside the local stack. First `fifo` alone is kept busy, which gives the highest
 * rate that it sustains there. Then `pipeline` gets messages at that rate for five minutes, whatever it delivers. Its
 * leases, its deadlines and its time limits must not make it do the same work again and again.
 */
import type { ToolkitAddresses } from 'pubsub-guarantees-emulator';
import { beside } from '../later/beside.ts';
import { limits } from '../limits.ts';
import { busyLoops } from './busy-loops.ts';
import { type Traffic, trafficOf } from './traffic.ts';

const LOOPS = 10;
const OUTSTANDING = 200;
/** Before the rate of `fifo` is measured: its functions have compiled what they run by then. */
const WARM_UP_MS = 15_000;
const FIFO_MS = 60_000;
const PIPELINE_MS = 300_000;
const MINUTE_MS = 60_000;
/** For what is left when the publishing ends. */
const DRAIN_MS = 900_000;
const PROJECT = 'demo-project';

export async function underLoad(print: (line: string) => void): Promise<object> {
  process.env['METADATA_SERVER_DETECTION'] = 'none';
  const { atLeast, atMost, missed } = limits(print);
  const loops = busyLoops(LOOPS, WARM_UP_MS + FIFO_MS + PIPELINE_MS + 2 * DRAIN_MS);
  try {
    const fifoPerSecond = await withTraffic('fifo', async (traffic) => {
      await traffic.keepOutstanding(OUTSTANDING, WARM_UP_MS);
      const before = traffic.delivered();
      await traffic.keepOutstanding(OUTSTANDING, FIFO_MS);
      return ((traffic.delivered() - before) / FIFO_MS) * 1_000;
    });
    print(`fifo alone, beside ${LOOPS} busy loops: ${fifoPerSecond.toFixed(1)} messages a second`);

    const minutes: number[] = [];
    const figures = await withTraffic('pipeline', async (traffic) => {
      let atLastMinute = 0;
      await traffic.keepRate(fifoPerSecond, PIPELINE_MS, (elapsedMs) => {
        if (elapsedMs < (minutes.length + 1) * MINUTE_MS) return;
        minutes.push(traffic.delivered() - atLastMinute);
        atLastMinute = traffic.delivered();
        print(
          `minute ${minutes.length}: ${minutes.at(-1)} came out, ${traffic.published()} published so far`,
        );
      });
      minutes.push(traffic.delivered() - atLastMinute);
      const inTime = traffic.delivered();
      const begun = performance.now();
      const isDrained = await traffic.drained(DRAIN_MS);
      return {
        published: traffic.published(),
        pipelinePerSecond: (inTime / PIPELINE_MS) * 1_000,
        drainSeconds: Math.round((performance.now() - begun) / 1_000),
        lost: isDrained ? 0 : traffic.published() - traffic.delivered() - traffic.deadLetters(),
        deadLetters: traffic.deadLetters(),
        repeated: traffic.repeated(),
      };
    });
    const ratio = figures.pipelinePerSecond / fifoPerSecond;
    print(
      `pipeline: ${figures.published} published, ${figures.pipelinePerSecond.toFixed(1)} a second, the rest within ${figures.drainSeconds} s`,
    );
    atLeast('pipeline, of the rate of fifo', ratio, 1 / 3);
    atLeast('the slowest minute, of the mean one', slowest(minutes), 0.2);
    atMost('messages that never arrived', figures.lost, 0);
    atMost('dead letters', figures.deadLetters, 0);
    if (missed().length > 0) process.exitCode = 1;
    return { fifoPerSecond, ...figures, ratio, minutes, missed: missed() };
  } finally {
    await loops.close();
  }
}

async function withTraffic<Result>(
  name: 'fifo' | 'pipeline',
  use: (traffic: Traffic) => Promise<Result>,
): Promise<Result> {
  const toolkit = await beside<ToolkitAddresses>('serve-toolkit.ts');
  try {
    const traffic = trafficOf(toolkit.ready.pubsub, PROJECT, name);
    try {
      return await use(traffic);
    } finally {
      await traffic.close();
    }
  } finally {
    await toolkit.close();
  }
}

/** Of the five whole minutes: the least, divided by their mean. */
function slowest(minutes: readonly number[]): number {
  const whole = minutes.slice(0, PIPELINE_MS / MINUTE_MS);
  const mean = whole.reduce((sum, each) => sum + each, 0) / whole.length;
  return mean === 0 ? 0 : Math.min(...whole) / mean;
}
