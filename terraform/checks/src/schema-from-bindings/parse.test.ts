/**
 * Reading a schema out of bindings, on a small pair of files in the form that the bindings have.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadSchema } from '../schema.ts';
import { blockFrom } from './parse.ts';

const link = (name: string): string =>
  `{@link https://registry.example/docs/resources/thing#${name} Thing#${name}}`;

const DECLARATIONS = `
export interface ThingConfig extends cdktf.TerraformMetaArguments {
    /**
    * Docs: ${link('name')}
    */
    readonly name: string;
    /**
    * Docs: ${link('zone_ids')}
    */
    readonly zoneIds?: string[];
    /**
    * rate_limits block
    *
    * Docs: ${link('rate_limits')}
    */
    readonly rateLimits: ThingRateLimits;
}
export interface ThingRateLimits {
    /**
    * Docs: ${link('per_second')}
    */
    readonly perSecond?: number;
}
export interface ThingCertificates {
}
`;

const CODE = `
class ThingRateLimitsOutputReference extends cdktf.ComplexObject {
    get perSecond() {
        return this.getNumberAttribute('per_second');
    }
    get burst() {
        return this.getNumberAttribute('burst');
    }
}
class ThingCertificatesOutputReference extends cdktf.ComplexObject {
    get cert() {
        return this.getStringAttribute('cert');
    }
}
class Thing extends cdktf.TerraformResource {
    constructor(scope, id, config) {
        this._rateLimits = new ThingRateLimitsOutputReference(this, "rate_limits");
        this._certificates = new ThingCertificatesList(this, "certificates", false);
    }
    get name() {
        return this.getStringAttribute('name');
    }
    get zoneIds() {
        return cdktf.Fn.tolist(this.getListAttribute('zone_ids'));
    }
    get uri() {
        return this.getStringAttribute('uri');
    }
}
exports.Thing = Thing;
`;

test('arguments, outputs and blocks are distinguished', () => {
  assert.deepEqual(blockFrom(DECLARATIONS, CODE), {
    attributes: {
      name: { type: 'string', use: 'required' },
      zone_ids: { type: ['set', 'string'], use: 'optional' },
      uri: { type: 'string', use: 'computed' },
      certificates: { type: ['list', ['object', { cert: 'string' }]], use: 'computed' },
    },
    blocks: {
      rate_limits: {
        nesting: 'list',
        max: 1,
        required: true,
        block: {
          attributes: {
            per_second: { type: 'number', use: 'optional' },
            burst: { type: 'number', use: 'computed' },
          },
          blocks: {},
        },
      },
    },
  });
});

test('an argument that the code does not have is an error, not a gap', () => {
  assert.throws(
    () => blockFrom(DECLARATIONS, CODE.replaceAll("'name'", "'title'")),
    /Thing does not have name/,
  );
});

test('a way of reading that is not known is an error', () => {
  assert.throws(
    () => blockFrom(DECLARATIONS, CODE.replace('getNumberAttribute', 'getTupleAttribute')),
    /getTupleAttribute/,
  );
});

test('the kept schema knows what the overlay adds, and what an output is', () => {
  const { resources } = loadSchema();
  const service = resources['google_cloudfunctions2_function']?.blocks['service_config']?.block;
  assert.equal(service?.attributes['direct_vpc_egress']?.use, 'optional');
  assert.equal(service?.attributes['uri']?.use, 'computed');
  assert.equal(resources['google_cloud_tasks_queue']?.attributes['location']?.use, 'required');
});
