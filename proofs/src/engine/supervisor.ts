/**
 * A supervisor of processes in numbered slots: where a process dies, it starts another one in the same slot. Until then
 * the slot still has the dead process.
 */
export type Supervisor<Member> = Readonly<{
  size: number;
  /** The process in this slot. Slots are numbered from 0; a number beyond the last begins again at the first. */
  at(slot: number): Member;
}>;

/**
 * `start` makes the process of a slot, and passes `died` to its plan. `restart` decides when the next process starts
 * (default: at once).
 *
 * @example
 * ```ts
 * const start = (_slot: number, died: () => void) => startProcess(clock, { lost, died });
 * const workers = supervise(3, start, (again) => clock.after(1_000, again));
 * workers.at(0).crash(); // a second later another process is in slot 0
 * ```
 */
export function supervise<Member>(
  size: number,
  start: (slot: number, died: () => void) => Member,
  restart: (start: () => void) => void = (again) => again(),
): Supervisor<Member> {
  const members: Member[] = [];
  const fill = (slot: number): void => {
    members[slot] = start(slot, () => restart(() => fill(slot)));
  };
  for (let slot = 0; slot < size; slot += 1) fill(slot);
  return { size, at: (slot) => members[slot % size] as Member };
}
