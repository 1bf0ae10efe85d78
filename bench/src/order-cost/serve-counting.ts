/**
 * A relay to the Firestore server on the given port that counts what is billed, for as long as standard input is open.
 * GET on its control port answers the sum since the last time. A call that it cannot price ends the process.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { relayTo } from '../once-firestore/relay.ts';
import { added, billed, NONE } from './billed.ts';

const [target = 0] = process.argv.slice(2).map(Number);
let sum = NONE;
const relay = await relayTo(target, 0, (path) => {
  const call = billed(path ?? '');
  return { ...call, ended: () => void (sum = added(sum, call.operations())) };
});
const control = createServer((_request, response) => {
  response.end(JSON.stringify({ operations: sum, calls: relay.take() }));
  sum = NONE;
});
control.listen(0, '127.0.0.1', () => {
  process.stdout.write(
    `${JSON.stringify({ port: relay.port, control: (control.address() as AddressInfo).port })}\n`,
  );
});
process.stdin.once('end', () => process.exit(0)).resume();
