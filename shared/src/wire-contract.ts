/** `pubsub-guarantees/attributes`: the wire contract of attributes, and the stage that refuses what no stage grants. */
export { ATTRIBUTE, LONGEST_DELAY_SECONDS, parseWishes, type Sequence, type Wishes } from './attributes.ts';
export { checkAttributes, type CheckAttributesOptions, type Granted } from './check-attributes.ts';
