/**
 * Listen: one stream with any number of targets. Everything that is sent up to a NO_CHANGE without target IDs is the
 * state at its read time, for all targets of the stream: a commit is seen as a whole or not at all, though several
 * may be seen as one. A client that is slow to read gets updates less often, and then the latest.
 *
 * A target that is resumed is reset and sent as a whole: the server keeps nothing of what it sent on a stream that has
 * ended.
 */
import { type handleBidiStreamingCall, Metadata } from '@grpc/grpc-js';
import { invalidArgument, StatusError } from '../grpc-server.ts';
import type { Watched } from './change-feed.ts';
import type { Database } from './database.ts';
import type { IndexChecks } from './index-check.ts';
import { parseTarget, type Target, type Update } from './listen-targets.ts';
import { parseDatabase } from './names.ts';
import { type ListenRequest, toWireDocument, type WireTarget } from './requests.ts';
import { type Microseconds, toWire } from './time.ts';

type Listening = Readonly<{ target: Target; watched: Watched }>;
type Send = (response: object) => void;

/** What ends each open stream with an error. */
export type OpenStreams = Set<(error: unknown) => void>;

export function listen(
  databases: (name: string) => Database,
  checks: IndexChecks,
  toStatus: (error: unknown, method: string) => StatusError,
  streams: OpenStreams,
): handleBidiStreamingCall<ListenRequest, object> {
  return (call) => {
    let isSlow = false;
    let targets: Targets | undefined;
    let isOver = false;
    const end = (): void => {
      isOver = true;
      streams.delete(fail);
      targets?.close();
    };
    const fail = (error: unknown): void => {
      if (isOver) return;
      end();
      // With headers the client takes the error as an answer, without as a connection that broke.
      call.sendMetadata(new Metadata());
      call.emit('error', toStatus(error, call.getPath()));
    };
    const send: Send = (response) => {
      if (!isOver && !call.write(response)) isSlow = true;
    };
    const guarded = (run: () => void) => (): void => {
      if (isOver) return;
      try {
        run();
      } catch (error) {
        fail(error);
      }
    };
    const refresh = guarded(() => {
      if (!isSlow) targets?.refresh();
    });
    call.on('drain', () => {
      isSlow = false;
      refresh();
    });
    call.on('data', (request: ListenRequest) =>
      guarded(() => {
        targets ??= targetsOf(parseDatabase(request.database), databases, checks, send, refresh);
        targets.handle(request);
      })(),
    );
    call.on('end', () => {
      if (isOver) return;
      end();
      call.end();
    });
    call.on('cancelled', end);
    call.on('close', end);
    call.on('error', end);
    streams.add(fail);
  };
}

type Targets = Readonly<{ handle(request: ListenRequest): void; refresh(): void; close(): void }>;

function targetsOf(
  name: string,
  databases: (name: string) => Database,
  checks: IndexChecks,
  send: Send,
  notify: () => void,
): Targets {
  const database = databases(name);
  const targets = new Map<number, Listening>();
  let assignsIds = false;

  /** Sends what is new of all targets. True when something is. */
  function sendUpdates(readTime: Microseconds): boolean {
    const { view } = database.current();
    let isNew = false;
    for (const [id, { target, watched }] of targets) {
      if (!watched.isTouched()) continue;
      const updates = target.refresh(view, watched.take());
      for (const update of updates) send(toResponse(update, id, readTime));
      isNew ||= updates.length > 0;
    }
    return isNew;
  }

  /** Without target IDs it is about all: the stream is at a consistent snapshot. */
  function sendSnapshot(type: string, targetIds: readonly number[], readTime: Microseconds): void {
    const resumeToken = Buffer.from(String(readTime));
    send({ targetChange: { targetChangeType: type, targetIds, readTime: toWire(readTime), resumeToken } });
  }

  function add(wire: WireTarget): void {
    if (wire.targetId < 0 || targets.has(wire.targetId)) {
      throw invalidArgument(`target_id ${wire.targetId} is not a new positive number on this stream`);
    }
    const id = wire.targetId === 0 ? nextId(targets) : wire.targetId;
    try {
      if (assignsIds && wire.targetId !== 0) {
        throw invalidArgument('after a target with target_id 0 all targets must have target_id 0');
      }
      assignsIds ||= wire.targetId === 0;
      begin(id, parseTarget(wire, name, checks(name)), wire);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      remove(id, { code: error.code, message: error.message, details: [] });
    }
  }

  function begin(id: number, target: Target, { resumeType, once }: WireTarget): void {
    send({ targetChange: { targetChangeType: 'ADD', targetIds: [id] } });
    if (resumeType !== undefined) send({ targetChange: { targetChangeType: 'RESET', targetIds: [id] } });
    database.feed.settle();
    const { view, readTime } = database.current();
    for (const update of target.refresh(view, undefined)) send(toResponse(update, id, readTime));
    sendUpdates(readTime);
    sendSnapshot('CURRENT', [id], readTime);
    sendSnapshot('NO_CHANGE', [], readTime);
    if (once) remove(id);
    else targets.set(id, { target, watched: database.feed.watch(target.interest, notify) });
  }

  function remove(id: number, cause: object | null = null): void {
    targets.get(id)?.watched.end();
    targets.delete(id);
    send({ targetChange: { targetChangeType: 'REMOVE', targetIds: [id], cause } });
  }

  return {
    handle({ database: asked, targetChange, addTarget, removeTarget }) {
      if (asked !== name) throw invalidArgument(`this stream listens to ${name}, not to ${asked}`);
      if (targetChange === 'addTarget' && addTarget !== undefined) add(addTarget);
      else if (targetChange === 'removeTarget' && removeTarget !== undefined) remove(removeTarget);
      else throw invalidArgument(`the target change ${targetChange ?? '(not set)'} is not known`);
    },
    refresh() {
      database.feed.settle();
      const { readTime } = database.current();
      if (sendUpdates(readTime)) sendSnapshot('NO_CHANGE', [], readTime);
    },
    close() {
      for (const { watched } of targets.values()) watched.end();
      targets.clear();
    },
  };
}

function nextId(targets: ReadonlyMap<number, unknown>): number {
  let id = 1;
  while (targets.has(id)) id += 1;
  return id;
}

function toResponse(update: Update, id: number, time: Microseconds): object {
  const readTime = toWire(time);
  switch (update.kind) {
    case 'changed':
      return {
        documentChange: { document: toWireDocument(update.doc, update.select), targetIds: [id] },
      };
    case 'deleted':
      return { documentDelete: { document: update.name, readTime, removedTargetIds: [id] } };
    case 'removed':
      return { documentRemove: { document: update.name, readTime, removedTargetIds: [id] } };
  }
}
