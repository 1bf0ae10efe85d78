/**
 * The services of an API as gRPC wants them, with every method, whose messages are built when a method is first
 * called: those of the methods that are expected from what they and those they are called with need, those of all
 * others from the whole description. So nothing is missing, and what is not called costs nothing. Where there are
 * classes for what is expected, nothing is built.
 *
 * Messages are converted as @grpc/proto-loader does it, which builds all messages of an API at once, and a descriptor
 * of each besides, that only reflection reads.
 */
import { type Described, type DescribedMethod, find, namesOf, servicesOf } from './described.ts';
import { leanTypes } from './lean-types.ts';

/** What is needed of a message type of protobufjs. */
export type MessageType = Readonly<{
  name: string;
  fromObject(object: Readonly<Record<string, unknown>>): object;
  encode(message: object): Readonly<{ finish(): Uint8Array }>;
  decode(bytes: Uint8Array): object;
  toObject(message: object, options: object): object;
}>;

/** Builds a description; what comes back finds a message type by its full name. */
export type Build = (description: Described) => Readonly<{ lookupType(name: string): MessageType }>;

/** A class that is there already, made by protobufjs ahead of time from the same description; by its full name. */
export type Classes = (name: string) => MessageType | undefined;

export type LazyMethod = Readonly<{
  path: string;
  originalName: string;
  requestStream: boolean;
  responseStream: boolean;
  requestSerialize(value: Readonly<Record<string, unknown>>): Buffer;
  requestDeserialize(bytes: Buffer): object;
  responseSerialize(value: Readonly<Record<string, unknown>>): Buffer;
  responseDeserialize(bytes: Buffer): object;
}>;

/** By full name, then by the method's. A service is made when its property is first read. */
export type LazyServices = Readonly<Record<string, Readonly<Record<string, LazyMethod>>>>;

/**
 * `expected` in groups that are built together, by full names, `google.pubsub.v1.Publisher.Publish`. `options` are
 * those of protobufjs's toObject.
 */
export function lazyServices(
  all: Described,
  expected: readonly (readonly string[])[],
  build: Build,
  options: object,
  classes: Classes = () => undefined,
): LazyServices {
  const names = namesOf(all);
  const services = servicesOf(all);
  const full = (type: string, service: string): string => find(names, type, service) ?? type;
  const leanOf = (group: readonly string[]): ReturnType<Build> => {
    const types = services.flatMap(({ name, methods }) =>
      Object.entries(methods)
        .filter(([method]) => group.includes(`${name}.${method}`))
        .flatMap(([, { requestType, responseType }]) => [full(requestType, name), full(responseType, name)]),
    );
    return build(leanTypes(all, names, types));
  };
  const lean = new Map(
    expected.flatMap((group) => {
      const root = once(() => leanOf(group));
      return group.map((method) => [method, root] as const);
    }),
  );
  const whole = once(() => build(all));
  const of = (service: string, method: string, type: string): (() => MessageType) =>
    once(() => {
      const name = full(type, service);
      const root = lean.get(`${service}.${method}`);
      if (root === undefined) return whole().lookupType(name);
      return classes(name) ?? root().lookupType(name);
    });
  const made = services.map(({ name, methods }) => {
    const get = once(() =>
      Object.fromEntries(
        Object.entries(methods).map(([method, described]) => {
          const request = of(name, method, described.requestType);
          const response = of(name, method, described.responseType);
          return [method, lazyMethod(`/${name}/${method}`, described, request, response, options)];
        }),
      ),
    );
    return [name, { get, enumerable: true }] as const;
  });
  return Object.create(Object.prototype, Object.fromEntries(made)) as LazyServices;
}

function lazyMethod(
  path: string,
  { requestStream = false, responseStream = false }: DescribedMethod,
  request: () => MessageType,
  response: () => MessageType,
  options: object,
): LazyMethod {
  const method = path.slice(path.lastIndexOf('/') + 1);
  return {
    path,
    originalName: `${method.slice(0, 1).toLowerCase()}${method.slice(1)}`,
    requestStream,
    responseStream,
    requestSerialize: serializer(request),
    requestDeserialize: (bytes) => request().toObject(request().decode(bytes), options),
    responseSerialize: serializer(response),
    responseDeserialize: (bytes) => response().toObject(response().decode(bytes), options),
  };
}

function serializer(type: () => MessageType): (value: Readonly<Record<string, unknown>>) => Buffer {
  return (value) => {
    const found = type();
    if (Array.isArray(value)) throw new Error(`an array is not a ${found.name}`);
    // protobufjs's writer makes Buffers wherever there are any.
    return found.encode(found.fromObject(value)).finish() as Buffer;
  };
}

export function once<Value>(make: () => Value): () => Value {
  let made: Readonly<{ value: Value }> | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
