// SPDX-License-Identifier: Apache-2.0 OR MIT
// node trace_processor.mjs DIRECTORY TRACE <QUERIES
//
// Loads a Perfetto trace into trace_processor, and answers questions about it.  A line of the
// standard input is a label, a colon and SQL; for each row of the answer a line is printed: the
// label, a colon and the columns, with " | " between them.
//
// DIRECTORY has the program as WebAssembly and its glue, as tests/lib/trace_processor.sh gets them.
// They are made for a worker of a browser, so this is what such a worker has: a global object that
// says where it is, and a port for messages.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInThisContext } from 'node:vm';

// The program is large, and each run uses little of it: to compile that much as it is called takes
// half a second, and all of it would take three.
setFlagsFromString('--liftoff-only');
setFlagsFromString('--wasm-lazy-compilation');

const [directory, traceFile] = process.argv.slice(2);
const queries = readFileSync(0, 'utf8').split('\n').filter((line) => line.trim() !== '');

function setGlobal(name, value) {
  Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
}

// Some lines of the glue are changed: the program is given as bytes, it is the one for 32 bits, and
// the bridge to it can be reached.
const changes = [
  ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
  ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.tdtProgram,'],
  [
    'const wasmBridge = new wasm_bridge_1.WasmBridge();',
    'const wasmBridge = new wasm_bridge_1.WasmBridge(); globalThis.tdtBridge = wasmBridge;',
  ],
];

function changedGlue() {
  let glue = readFileSync(join(directory, 'engine_bundle.node.js'), 'utf8');

  for (const [from, to] of changes) {
    if (!glue.includes(from)) throw new Error(`the glue has no ${from}`);
    glue = glue.replace(from, () => to);
  }
  return glue;
}

function startProgram(port) {
  setGlobal('self', globalThis);
  setGlobal('WorkerGlobalScope', globalThis.WorkerGlobalScope ?? class {});
  setGlobal('location', { href: `${pathToFileURL(directory).href}/` });
  setGlobal('tdtProgram', new Uint8Array(readFileSync(join(directory, 'trace_processor.wasm'))));
  runInThisContext(changedGlue(), { filename: 'engine_bundle.node.js' });
  globalThis.tdtBridge.initialize(port);
}

async function makeEngine(port) {
  const { EngineBase } = await import(pathToFileURL(join(directory, 'engine.mjs')).href);

  class Engine extends EngineBase {
    mode = 'WASM';
    id = 'tdt';
    rpcSendRequestBytes(bytes) {
      port.postMessage(bytes);
    }
  }
  const engine = new Engine();
  port.onmessage = ({ data }) => {
    if (data instanceof Uint8Array) engine.onRpcResponseBytes(data);
  };
  return engine;
}

async function load(engine, bytes) {
  const piece = 1 << 20;

  for (let at = 0; at < bytes.length; at += piece)
    await engine.parse(bytes.subarray(at, at + piece));
  await engine.notifyEof();
}

async function answer(engine, line) {
  const colon = line.indexOf(':');
  const result = await engine.query(line.slice(colon + 1));
  const columns = result.columns();

  for (const row = result.iter({}); row.valid(); row.next())
    console.log(`${line.slice(0, colon)}: ${columns.map((name) => row.get(name)).join(' | ')}`);
}

console.warn = () => {}; // what the glue says of its own versions
const { port1, port2 } = new MessageChannel();
startProgram(port1);
const engine = await makeEngine(port2);
await load(engine, new Uint8Array(readFileSync(traceFile)));
for (const line of queries) await answer(engine, line);
process.exit(0);
