/**
 * Seats for processes: where one dies, another one starts in its seat. The dead one keeps the seat until then.
 */
export type Crew<Member> = Readonly<{
  size: number;
  /** The process in this seat; seats are counted from 0, and round. */
  at(seat: number): Member;
}>;

/**
 * `start` makes the process of a seat, and hands `died` to its plan. `restart` decides when the next one starts: at once,
 * unless it is given.
 *
 * @example
 * ```ts
 * const workers = crew(3, (_seat, died) => startProcess(clock, { lost, died }), (start) => clock.after(1_000, start));
 * workers.at(0).crash(); // a second later another one is there
 * ```
 */
export function crew<Member>(
  size: number,
  start: (seat: number, died: () => void) => Member,
  restart: (start: () => void) => void = (again) => again(),
): Crew<Member> {
  const members: Member[] = [];
  const fill = (seat: number): void => {
    members[seat] = start(seat, () => restart(() => fill(seat)));
  };
  for (let seat = 0; seat < size; seat += 1) fill(seat);
  return { size, at: (seat) => members[seat % size] as Member };
}
