/** Google's client for one server, and a log that counts. */
import { Firestore } from '@google-cloud/firestore';
import type { Log } from 'pubsub-guarantees';

export async function withClient<Value>(
  port: number,
  use: (firestore: Firestore) => Promise<Value>,
): Promise<Value> {
  const firestore = new Firestore({
    projectId: 'bench',
    host: `127.0.0.1:${port}`,
    ssl: false,
    customHeaders: { Authorization: 'Bearer owner' },
  });
  try {
    return await use(firestore);
  } finally {
    await firestore.terminate();
  }
}

export function countingLog(): Readonly<{ log: Log; lines(): number }> {
  let count = 0;
  const line = (): void => void (count += 1);
  return { log: { info: line, warn: line, error: line }, lines: () => count };
}
