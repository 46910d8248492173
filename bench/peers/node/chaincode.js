// The probe's put and get in JavaScript, on the npm package fabric-shim: what the Python shim is compared with.
'use strict';

const { createHash } = require('node:crypto');
const { readFileSync } = require('node:fs');
const shim = require('fabric-shim');

const MESSAGE_LIMIT = 100 * 1024 * 1024;

class Store {
  async Init() {
    return shim.success();
  }

  async Invoke(stub) {
    const [name, ...rest] = stub.getBufferArgs();
    const work = functions[name.toString()];
    if (work === undefined || work.length !== rest.length + 1) {
      return shim.error(Buffer.from(`unknown function ${name} with ${rest.length} arguments`));
    }
    try {
      return shim.success(await work(stub, ...rest));
    } catch (error) {
      return shim.error(Buffer.from(error.message));
    }
  }
}

const functions = {
  put: async (stub, key, value) => {
    await stub.putState(key.toString(), value);
    return Buffer.alloc(0);
  },

  get: async (stub, key) => {
    const value = await stub.getState(key.toString());
    if (value.length === 0) {
      throw new Error(`no value under ${key}`);
    }
    return Buffer.from(value);
  },

  // This shim knows no batches: each key is a message and an answer.
  put_many: async (stub, prefix, count, size) => {
    const keys = keysOf(prefix, count);
    for (const key of keys) {
      await stub.putState(key, fill(key, Number(size)));
    }
    return Buffer.from(JSON.stringify({ written: keys.length }));
  },

  get_many: async (stub, prefix, count) => {
    const digest = createHash('sha256');
    let bytes = 0;
    let found = 0;
    for (const key of keysOf(prefix, count)) {
      const value = await stub.getState(key);
      if (value.length > 0) {
        digest.update(value);
        bytes += value.length;
        found += 1;
      }
    }
    return Buffer.from(JSON.stringify({ bytes, found, sha256: digest.digest('hex') }));
  },
};

function keysOf(prefix, count) {
  const number = Number(count);
  if (!Number.isInteger(number) || number < 1 || number > 100_000) {
    throw new Error('count must be 1 to 100000');
  }
  return Array.from({ length: number }, (_, place) => `${prefix}${String(place).padStart(6, '0')}`);
}

function fill(key, size) {
  return Buffer.alloc(size, key);
}

function tls(name) {
  return readFileSync(`/etc/attestree/tls/${name}`);
}

const [ccid, address] = process.argv.slice(2);
shim
  .server(new Store(), {
    ccid,
    address,
    tlsProps: { key: tls('server.key'), cert: tls('server.crt'), clientCACerts: tls('ca.crt') },
    'grpc.max_receive_message_length': MESSAGE_LIMIT,
    'grpc.max_send_message_length': MESSAGE_LIMIT,
  })
  .start()
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
