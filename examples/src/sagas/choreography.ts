/** Which service listens to which event of the choreographed food order: one topic for each event, one subscription for each listener. */
export const EVENTS = ['placed', 'paid', 'found', 'confirmed', 'refused', 'failed'] as const;
export type EventName = (typeof EVENTS)[number];

export const eventTopic = (event: EventName): string => `food-event-${event}`;

/** `refused` is the kitchen's: the courier is released before `failed` releases the payment. */
export const LISTENS = {
  payments: {
    placed: 'food-event-placed-payments',
    confirmed: 'food-event-confirmed-payments',
    failed: 'food-event-failed-payments',
  },
  couriers: { paid: 'food-event-paid-couriers', refused: 'food-event-refused-couriers' },
  kitchen: { found: 'food-event-found-kitchen' },
} as const satisfies Readonly<Record<string, Readonly<Partial<Record<EventName, string>>>>>;
export type ServiceName = keyof typeof LISTENS;
