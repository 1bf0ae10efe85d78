/**
 * A Redis that is not there would show itself much later, as messages that are retried for ever.
 */
import { listens } from './child.ts';

/** Throws an error that names the URL and what is wrong with it, within two seconds. */
export async function assertRedis(redisUrl: string | undefined): Promise<void> {
  if (redisUrl === undefined) throw new Error('--store redis needs --redis-url; accepted: redis://host:port');
  const url = URL.canParse(redisUrl) ? new URL(redisUrl) : undefined;
  if (url === undefined || !/^rediss?:$/.test(url.protocol) || url.hostname === '') {
    throw new Error(
      `--redis-url is ${JSON.stringify(redisUrl)}; accepted: redis://host:port or rediss://host:port`,
    );
  }
  const port = Number(url.port || 6379);
  if (!(await listens(port, url.hostname)))
    throw new Error(`no Redis answers on ${url.hostname}:${port} (--redis-url)`);
}
