/**
 * A port of which the methods are requests of a process.
 */
import type { Process } from './process.ts';

type Method = (...args: never[]) => Promise<unknown>;

/** For each method that is to be a request: its name, or how the name follows from the arguments. */
export type Requests<Port, Request extends string = string> = Readonly<{
  [Name in keyof Port as Port[Name] extends Method ? Name : never]?: Port[Name] extends (
    ...args: infer Args
  ) => Promise<unknown>
    ? Request | ((...args: Args) => Request)
    : never;
}>;

/**
 * The port as the process sees it. Methods without a name in `requests` are left as they are; `port` is an object of
 * closures, none of which uses `this`.
 *
 * @example
 * ```ts
 * const documents = through(process.call, memoryDocuments({ clock }), { read: 'read', update: (_key, write) => write.kind });
 * ```
 */
export function through<Port extends object, Request extends string>(
  call: Process<Request>['call'],
  port: Port,
  requests: Requests<Port, Request>,
): Port {
  const methods = port as Readonly<Record<string, (...args: unknown[]) => Promise<unknown>>>;
  const wrapped = Object.entries(
    requests as Readonly<Record<string, Request | ((...args: unknown[]) => Request)>>,
  ).map(([name, request]) => {
    const method = (...args: unknown[]): Promise<unknown> =>
      call(typeof request === 'string' ? request : request(...args), async () => methods[name]?.(...args));
    return [name, method] as const;
  });
  return { ...port, ...Object.fromEntries(wrapped) };
}
