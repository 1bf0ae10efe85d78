/**
 * Which RPC an HTTP request stands for, by the `google.api.http` annotations of the protos: none is written down here.
 */
import type { ServiceDefinition } from '@grpc/grpc-js';

export type Route = Readonly<{
  rpc: string;
  /** The field that the path holds, and its value. */
  pathField: string;
  name: string;
  /** The field that the body holds; `*`: the body is the request; undefined: there is no body. */
  body: string | undefined;
}>;

type Rule = Readonly<Partial<Record<'get' | 'post' | 'put' | 'patch' | 'delete' | 'body', string>>>;

/** Undefined where nothing answers. */
export function routesOf(definition: ServiceDefinition): (method: string, path: string) => Route | undefined {
  const routes = Object.entries(definition).flatMap(([rpc, method]) => {
    const rule = ruleOf(method);
    return rule === undefined ? [] : [{ rpc, ...parsed(rule) }];
  });
  return (method, path) => {
    for (const { verb, pattern, ...route } of routes) {
      const name = verb === method ? pattern.exec(path)?.[1] : undefined;
      if (name !== undefined) return { ...route, name: decoded(name) };
    }
    return undefined;
  };
}

/** @grpc/proto-loader keeps the options of a method, which the types of @grpc/grpc-js do not know. */
function ruleOf(method: object): Rule | undefined {
  const { options } = method as { options?: Readonly<Record<string, unknown>> };
  return options?.['(google.api.http)'] as Rule | undefined;
}

/** A template of this API has one variable: `/v2/{name=projects/…}:pause`. */
function parsed({ body, ...verbs }: Rule): Omit<Route, 'rpc' | 'name'> & { verb: string; pattern: RegExp } {
  const [verb = '', template = ''] = Object.entries(verbs)[0] ?? [];
  const [, before = '', pathField = '', name = '', after = ''] =
    /^([^{]*)\{([a-z_.]+)=([^}]+)\}([^{]*)$/.exec(template) ?? [];
  if (pathField === '') throw new Error(`the template ${template} has not one variable`);
  const pattern = new RegExp(`^${before}(${name.replaceAll('*', '[^/]+')})${after}$`);
  return { verb: verb.toUpperCase(), pattern, pathField, body };
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    // A stray % is no escape: the methods refuse it by its name.
    return name;
  }
}
