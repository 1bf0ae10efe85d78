/**
 * Says once, in one line each, which windows do not fit: record lifetime, lease, deadlines, retention, eviction. In the
 * background and never in the way: a function starts and serves the same whether anything can be read or not.
 */
import { checkWindows, type Middleware, type Windows } from 'pubsub-guarantees';
import type { Ports } from './clients.ts';
import type { Config } from './config.ts';

type Asked = Pick<Ports, 'log' | 'subscriptionWindows' | 'evictionPolicy'>;

/** Asks at once where the subscription is configured, and else with the first delivery, which names it. */
export function windowsChecked(config: Config, ports: Asked): Middleware {
  let asked = !config.checkWindows;

  const tell = (windows: Windows): void => {
    for (const { code, text } of checkWindows(windows)) {
      ports.log.warn(text, { event: 'windows_do_not_fit', code });
    }
  };
  const ask = async (subscription: string): Promise<void> => {
    asked = true;
    const settings = await ports.subscriptionWindows(subscription);
    const { dedup, functionTimeout } = config;
    tell({
      handlerTimeout: config.timeout,
      ...(dedup !== undefined && { dedup: { lease: dedup.lease, retention: dedup.retention } }),
      ...(functionTimeout !== undefined && { functionTimeout }),
      ...(settings !== undefined && { subscription: settings }),
    });
    const evictionPolicy = await ports.evictionPolicy;
    if (evictionPolicy !== undefined) tell({ evictionPolicy });
  };
  const askQuietly = (subscription: string): void =>
    void ask(subscription).catch((error: unknown) =>
      ports.log.warn('the windows could not be checked', { error: String(error) }),
    );

  if (!asked && config.source !== undefined) askQuietly(config.source);
  return (next) => (message, context) => {
    if (!asked) askQuietly(context.source);
    return next(message, context);
  };
}
