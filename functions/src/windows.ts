/**
 * Says once, in one line each, which windows do not fit: record lifetime, lease, deadlines, retention, eviction. In the
 * background and never in the way: a function starts and serves the same whether anything can be read or not.
 *
 * The subscription is asked when a delivery finds the process warm: the first one waits for the process to start, and
 * nothing that it does not need runs beside it. Between deliveries a platform may give no CPU time, so that a question
 * stays without an answer: later deliveries ask again, a few times.
 */
import type { Middleware } from 'pubsub-guarantees';
import { checkWindows, type SubscriptionWindows, type Windows } from 'pubsub-guarantees/dedup';
import type { Ports } from './clients.ts';
import type { Config } from './config.ts';

type Asked = Pick<Ports, 'log' | 'subscriptionWindows' | 'evictionPolicy'>;

/** A subscription that may not be read never answers. */
const TRIES = 3;

export function checkWindowsAtStart(config: Config, ports: Asked): Middleware {
  let triesLeft = config.checkWindows ? TRIES : 0;
  let isAsking = false;
  let isWarm = false;

  const quietly = (work: () => Promise<void>): void =>
    void work().catch((error: unknown) =>
      ports.log.warn('the windows could not be checked', { error: String(error) }),
    );
  const warn = (windows: Windows): void => {
    for (const { code, text } of checkWindows(windows)) {
      ports.log.warn(text, { event: 'windows_do_not_fit', code });
    }
  };
  const warnOfTimes = (settings: SubscriptionWindows | undefined): void => {
    const { dedup, functionTimeout } = config;
    warn({
      handlerTimeout: config.timeout,
      ...(dedup !== undefined && { dedup: { lease: dedup.lease, retention: dedup.retention } }),
      ...(functionTimeout !== undefined && { functionTimeout }),
      ...(settings !== undefined && { subscription: settings }),
    });
  };
  const ask = async (subscription: string): Promise<void> => {
    triesLeft -= 1;
    isAsking = true;
    try {
      const settings = await ports.subscriptionWindows(subscription);
      if (settings !== undefined) triesLeft = 0;
      // Without an answer the rest is judged alone, once: an answer may yet say that it fits.
      if (triesLeft === 0) warnOfTimes(settings);
      isAsking = false;
    } catch (error) {
      triesLeft = 0;
      throw error;
    }
  };

  if (config.checkWindows) {
    quietly(async () => {
      const evictionPolicy = await ports.evictionPolicy;
      if (evictionPolicy !== undefined) warn({ evictionPolicy });
    });
  }
  return (next) => async (message, context) => {
    if (isWarm && !isAsking && triesLeft > 0) quietly(() => ask(config.source ?? context.source));
    try {
      return await next(message, context);
    } finally {
      isWarm = true;
    }
  };
}
