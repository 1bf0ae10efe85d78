import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import type { Subscription } from '@google-cloud/pubsub';
import { deadLettering } from '../dead-letter/dead-lettering.ts';
import { dedup } from '../dedup/dedup.ts';
import { inbox } from '../dedup/inbox.ts';
import { memoryInbox } from '../dedup/inbox-memory.ts';
import { memoryClaims } from '../dedup/memory.ts';
import type { Duration } from '../duration.ts';
import { compose, type Handler } from '../handler.ts';
import { silent } from '../log.ts';
import { ack } from '../outcome.ts';
import { memoryPublisher, virtualClock } from '../testing/index.ts';
import { httpEndpoint } from './http-endpoint.ts';
import { receive } from './pubsub.ts';
import { refusal } from '../testing/refusal.ts';

const clock = virtualClock();
const done: Handler = async () => ack();
const deadLetters = deadLettering(memoryPublisher(), 'dead-letters');
const once = dedup(memoryClaims({ clock }), { clock });
const quick = dedup(memoryClaims({ clock }), { clock, minimumHandlerTime: '500ms' });

/** A subscription object that no server serves. */
const subscription = (): Subscription =>
  Object.assign(new EventEmitter(), {
    name: 'projects/p/subscriptions/s',
    pubsub: { projectId: 'p' },
    setOptions: () => {},
    close: () => Promise.resolve(),
  }) as unknown as Subscription;

const RECEIVERS = {
  receive: (handler: Handler, timeout: Duration) =>
    void receive(subscription(), handler, {
      consumer: 'c',
      clock,
      log: silent,
      handlerTimeout: timeout,
    }).close(),
  httpEndpoint: (handler: Handler, timeout: Duration) =>
    void httpEndpoint(handler, { consumer: 'c', clock, log: silent, handlerTimeout: timeout }),
};

const HANDLERS: Readonly<Record<string, Handler>> = {
  'dedup alone': once(done),
  'dedup among others': compose(done, [deadLetters, once, deadLetters]),
  'two of them': compose(done, [quick, once]),
  'two of them, the other way': compose(done, [once, quick]),
  inbox: inbox(memoryInbox({ clock }), { clock })(async () => ack()),
  'inbox among others': compose(
    inbox(memoryInbox({ clock }), { clock })(async () => ack()),
    [deadLetters],
  ),
};

for (const [receiver, open] of Object.entries(RECEIVERS)) {
  for (const [name, handler] of Object.entries(HANDLERS)) {
    test(`${receiver} with ${name} does not start with less time than that keeps for a handler`, () => {
      for (const timeout of ['1s', '5s'] as const) {
        assert.throws(
          () => open(handler, timeout),
          refusal(
            'handlerTimeout',
            new RegExp(
              `^handlerTimeout is "${timeout}"; accepted: more than minimumHandlerTime .*\\(5000 ms\\)`,
            ),
          ),
        );
      }
      open(handler, '6s');
    });
  }

  test(`${receiver} without such a part takes any time but none`, () => {
    open(done, '1ms');
    open(compose(done, [deadLetters]), '1ms');
    open(compose(done, [quick]), '501ms');
    assert.throws(
      () => open(done, '0s'),
      refusal('handlerTimeout', /^handlerTimeout is "0s"; accepted: at least 1ms$/),
    );
  });
}
