/** A request that is known to be in a process before its answer is waited for, for tests. */
import { once } from 'node:events';
import { request } from 'node:http';

export type Answer = Readonly<{ status: number; text: string }>;

/**
 * Resolves once the process has taken the request (it says so: `Expect: 100-continue`) and the whole body is sent. The
 * answer rejects where the connection ends without one.
 */
export async function inFlight(
  url: string,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = { 'content-type': 'application/json' },
): Promise<Readonly<{ answer: Promise<Answer> }>> {
  const length = Buffer.byteLength(body);
  const sent = request(url, {
    method: 'POST',
    headers: { ...headers, 'content-length': length, expect: '100-continue' },
    agent: false,
  });
  const answer = new Promise<Answer>((resolve, reject) => {
    sent.once('error', reject);
    sent.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }));
      response.once('error', reject);
    });
  });
  // It is waited for later.
  answer.catch(() => undefined);
  sent.flushHeaders();
  await Promise.race([once(sent, 'continue'), answer]);
  const written = new Promise<void>((resolve) => {
    sent.end(body, () => resolve());
  });
  await Promise.race([written, answer]);
  return { answer };
}
