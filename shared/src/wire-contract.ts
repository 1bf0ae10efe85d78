/**
 * `pubsub-guarantees/attributes`: the wire contract of attributes, and the stage that refuses what no stage applies.
 */
export {
  ATTRIBUTE,
  LONGEST_DELAY_SECONDS,
  parseDeliveryOptions,
  type Sequence,
  type DeliveryOptions,
} from './attributes.ts';
export { checkAttributes, type CheckAttributesOptions, type AppliedOption } from './check-attributes.ts';
