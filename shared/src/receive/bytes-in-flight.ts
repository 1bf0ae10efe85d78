/**
 * A limit on the bytes that a process has in flight. An instance takes many requests at once, and one message may have
 * 10 MB: without a limit they need more memory than there is, the process dies, and every message that it has loses a
 * delivery attempt. What does not fit is refused at once, before it is read, and comes again.
 *
 * One request always fits where no other holds anything: a limit that is too small for one message must not keep it out
 * for ever.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type Clock, systemClock } from '../clock.ts';
import { TransientError } from '../errors.ts';
import { consoleLog, type Log } from '../log.ts';
import { checkOptions, clock as aClock, log as aLog, number, required, text, whole } from '../options.ts';
import type { PayloadStore } from '../payload/payload-store.ts';
import { ATTR, type Capability, count } from '../telemetry/instruments.ts';

const MIB = 1_048_576;
/**
 * What a process has without any message, and what a byte of a body takes at most while it is in flight: as it came, as
 * text, decoded, and in the requests to Firestore and Pub/Sub. `npm run bench -- memory` measures both together.
 */
const BASE_BYTES = 160 * MIB;
const FACTOR = 5;
/** A message of 10 MB in base64, with its attributes. */
const LARGEST_BYTES = 14 * MIB;

export type BytesInFlight = Readonly<{
  /** Runs the work of one request. What it takes is given back when the result settles. */
  during<Result>(work: () => Promise<Result>): Promise<Result>;
  /** For the request whose work calls it. False: there is no room, and nothing is taken. Outside any: always true. */
  take(bytes: number): boolean;
}>;

export type BytesInFlightOptions = Readonly<{
  /** In bytes, more than zero. */
  limit: number;
  /** Default: the machine's. */
  clock?: Clock;
  /** Default: warnings and errors as JSON lines on standard error. */
  log?: Log;
  /** What is measured, as an attribute of the metric of refusals. */
  capability: Capability;
}>;

/**
 * The limit that fits a process with so much memory, in bytes: (memory - 160 MiB) / 5, and never less than one message
 * of 10 MB. 512 MiB give 70 MiB.
 *
 * @example
 * const limit = bytesFor(512 * 1_048_576); // 70 MiB
 */
export function bytesFor(memoryBytes: number): number {
  number('memoryBytes', memoryBytes);
  return Math.max(LARGEST_BYTES, Math.floor((memoryBytes - BASE_BYTES) / FACTOR));
}

/** A line of the log for the first refusal, and then one a minute at most: refusals come in bursts. */
const LINE_EVERY_MS = 60_000;

/**
 * Throws ConfigError `INVALID_OPTION`.
 *
 * @example
 * const room = bytesInFlight({ limit: bytesFor(512 * 1_048_576), clock, log, capability: 'delivery' });
 * const status = await room.during(async () => (room.take(contentLength) ? handle() : 429));
 */
export function bytesInFlight(options: BytesInFlightOptions): BytesInFlight {
  checkOptions<BytesInFlightOptions>(options, {
    limit: required(whole(1)),
    clock: aClock,
    log: aLog,
    capability: required(text),
  });
  const { limit, clock = systemClock(), log = consoleLog(), capability } = options;
  const requests = new AsyncLocalStorage<{ own: number }>();
  let total = 0;
  let refused = 0;
  let saidAt = -Infinity;

  const refuse = (bytes: number): false => {
    count('memoryRefusals', { [ATTR.capability]: capability });
    refused += 1;
    if (clock.monotonic() - saidAt >= LINE_EVERY_MS) {
      saidAt = clock.monotonic();
      log.warn('refused for the moment: too many bytes are in flight', {
        event: 'memory_full',
        bytes,
        inFlightBytes: total,
        acceptedBytes: limit,
        refused,
      });
      refused = 0;
    }
    return false;
  };

  return {
    async during(work) {
      const request = { own: 0 };
      try {
        return await requests.run(request, work);
      } finally {
        total -= request.own;
        request.own = 0;
      }
    },
    take(bytes) {
      const request = requests.getStore();
      if (request === undefined) return true;
      if (total > request.own && total + bytes > limit) return refuse(bytes);
      request.own += bytes;
      total += bytes;
      return true;
    },
  };
}

/**
 * A payload store that loads only what fits. `get` rejects with TransientError `MEMORY_FULL` where it does not.
 *
 * @example
 * const room = bytesInFlight({ limit: bytesFor(512 * 1_048_576), capability: 'delivery' });
 * const bounded = payloadsThatFit(firestorePayloads(firestore), room);
 */
export function payloadsThatFit(payloads: PayloadStore, room: BytesInFlight): PayloadStore {
  return {
    ...payloads,
    async get(ref) {
      if (!room.take(ref.bytes)) {
        throw new TransientError(
          'MEMORY_FULL',
          `a payload of ${ref.bytes} bytes does not fit beside the others`,
        );
      }
      return payloads.get(ref);
    },
  };
}
