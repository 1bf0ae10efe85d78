/**
 * Whether a Postgres server takes queries, asked with the first message of its protocol
 * (https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-START-UP), so that no client library is needed.
 */
import { connect } from 'node:net';

export type PostgresAddress = Readonly<{ host: string; port: number; user: string; database: string }>;

const PROTOCOL_3 = 196_608;
const TERMINATE = Buffer.from([0x58, 0, 0, 0, 4]);
const LIMIT_MS = 10_000;

/** False as well where it asks for a password. Never rejects. */
export function takesQueries({ host, port, user, database }: PostgresAddress): Promise<boolean> {
  const parameters = Buffer.from(`user\0${user}\0database\0${database}\0\0`);
  const header = Buffer.alloc(8);
  header.writeInt32BE(header.length + parameters.length, 0);
  header.writeInt32BE(PROTOCOL_3, 4);
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: LIMIT_MS });
    let received = Buffer.alloc(0);
    const end = (answer: boolean): void => {
      if (answer) socket.end(TERMINATE);
      else socket.destroy();
      resolve(answer);
    };
    socket.on('connect', () => socket.write(Buffer.concat([header, parameters])));
    socket.on('data', (data: Buffer) => {
      received = Buffer.concat([received, data]);
      const types = typesIn(received);
      if (types.includes('Z')) end(true);
      else if (types.includes('E')) end(false);
    });
    socket.on('timeout', () => end(false));
    socket.on('error', () => end(false));
    socket.on('close', () => resolve(false));
  });
}

/** Of whole messages: a byte for the type, and four for the length, which counts itself. */
function typesIn(bytes: Buffer): string {
  let types = '';
  for (let at = 0; at + 5 <= bytes.length; ) {
    const next = at + 1 + bytes.readInt32BE(at + 1);
    if (next <= at || next > bytes.length) break;
    types += String.fromCharCode(bytes[at] ?? 0);
    at = next;
  }
  return types;
}
