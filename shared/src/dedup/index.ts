/** `pubsub-guarantees/dedup`: once. Stores have entry points of their own: `/dedup/firestore`, `/dedup/redis`. */
export type { ClaimAnswer, ClaimRequest, ClaimStore, HeldClaim, RenewalAnswer } from './claim-store.ts';
export { dedup } from './dedup.ts';
export { inbox, type InboxOptions } from './inbox.ts';
export type { InboxContext, InboxHandler } from './inbox-run.ts';
export type { Completion, InboxStore } from './inbox-store.ts';
export type { DedupOptions } from './settings.ts';
export {
  checkWindows,
  type ConfigurationProblem,
  type SubscriptionWindows,
  type Windows,
} from './windows.ts';
