// A client of the TypeScript SDK: lists or finds tools, calls one, gets a prompt and reads a
// resource, and prints what it got as JSON.
//
//   node client.mjs MODULES v1|v2 VERSION http URL
//   node client.mjs MODULES v1|v2 VERSION stdio COMMAND ARG...
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, line, version, transport, target, ...args] = process.argv.slice(2);
const require = createRequire(modules + '/');
const load = name => import(pathToFileURL(require.resolve(name)));

let Client, HTTP, Stdio, options;
if (line === 'v1') {
  ({ Client } = await load('@modelcontextprotocol/sdk/client/index.js'));
  ({ StreamableHTTPClientTransport: HTTP } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js'));
  ({ StdioClientTransport: Stdio } = await load('@modelcontextprotocol/sdk/client/stdio.js'));
} else {
  ({ Client, StreamableHTTPClientTransport: HTTP } = await load('@modelcontextprotocol/client'));
  ({ StdioClientTransport: Stdio } = await load('@modelcontextprotocol/client/stdio'));
  options = { versionNegotiation: { mode: version === 'legacy' || version === 'auto' ? version : { pin: version } } };
}

const client = new Client({ name: 'somebody', version: '1.0.0' }, options);
await client.connect(transport === 'http' ? new HTTP(new URL(target)) : new Stdio({ command: target, args, stderr: 'inherit' }));
const list = await client.listTools();
const searches = list.tools.some(t => t.name === 'find_tools');
const found = searches ? (await client.callTool({ name: 'find_tools', arguments: { query: 'simple text' } })).structuredContent.tools : list.tools;
const call = await client.callTool(searches ? { name: 'call_tool', arguments: { name: 'test_simple_text', arguments: {} } } : { name: 'test_simple_text', arguments: {} });
const prompt = await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'one', arg2: 'two' } });
const resource = await client.readResource({ uri: 'test://static-text' });
console.log(JSON.stringify({
  server: client.getServerVersion().name,
  listed: list.tools.length,
  tools: found.map(t => t.name),
  call: call.content[0].text,
  prompt: prompt.messages[0].content.text,
  resource: resource.contents[0].text,
}));
await client.close();
