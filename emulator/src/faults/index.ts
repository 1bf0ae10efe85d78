/**
 * Faults on request: what the servers, the stack and its users need of them. A plan:
 *
 *     { "seed": 7,
 *       "rules": [
 *         { "service": "pubsub", "method": "Publish", "share": 0.2, "action": { "type": "lose-reply" } },
 *         { "service": "tasks", "method": "dispatch", "resource": "*-mail", "nth": [1, 4],
 *           "action": { "type": "fail", "status": 503 } } ] }
 *
 * Calls are counted from 1 for each method and resource since the plan was set, and the first rule that fires decides.
 * Which client makes the calls, and in which order those of different resources arrive, changes no decision.
 *
 * | action | with | what happens |
 * | --- | --- | --- |
 * | `fail` | RPCs; `push`, `dispatch`, `trigger` | RPC: nothing is done, `code` (UNAVAILABLE) with `message`. Otherwise: not sent; counts as answered `status`, or as a broken connection |
 * | `lose-reply` | RPCs but bidirectional streams; `push`, `dispatch`, `trigger` | done, and the client has `code` (UNAVAILABLE); sent, and the connection broke |
 * | `delay` | RPCs; `deliver`, `push`, `dispatch`, `trigger` | `ms` of real time before an RPC, because its client's deadline is real; of the clock before the others |
 * | `cut` | RPCs | destroys the connection: `when` before (default) or after the work, a stream after `afterMessages` (0) responses |
 * | `drop-ack` | Acknowledge, ModifyAckDeadline, on a StreamingPull too | answered OK, not carried out; never with exactly-once delivery |
 * | `duplicate` | Publish; `deliver`, `push`, `dispatch`, `trigger` | twice; `deliver` never with exactly-once delivery |
 * | `lose` | `trigger` | never sent, as after a day without success |
 * | `reorder` | `deliver` | overtaken by `window` later messages, waits at most `atMostMs` (1,000) of the clock; never with an ordering key on an ordered subscription |
 * | `restart` | RPCs | the service goes down and comes back after `downMs` (0) of the clock, its `state` kept or lost |
 *
 * A fault is recorded when it is decided; what is never done is recorded with the reason in `skipped`. A rule is about calls that begin
 * after it was set: a stream that is open already goes on.
 */
export { createFaults, type Faults } from './faults.ts';
export { answerFaults } from './http.ts';
export type { Action, Plan, RestartSpec, Rule } from './plan.ts';
export type { FaultRecord } from './record.ts';
