import { expect, test } from 'bun:test';
import { listenForMetrics } from '../../gateway/metrics.ts';
import { startBackend } from '../fakes/backend.ts';
import { startGateway } from '../started/gateway.ts';

test('metrics and the status are told beside each other, and the status nowhere else', async () => {
  await using backend = startBackend();
  await using started = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
  const { gateway, url } = started;
  const listening = listenForMetrics({ hostname: '127.0.0.1', port: 0 }, gateway.metrics, gateway.status);
  if (listening.kind === 'refused') throw new Error(listening.sentence);
  const ask = async (path: string) => {
    const response = await fetch(new URL(path, listening.url));
    return [response.status, response.headers.get('content-type'), await response.text()] as const;
  };
  const [status, type, text] = await ask('/status.json');
  expect([status, type?.split(';')[0]]).toEqual([200, 'application/json']);
  expect(JSON.parse(text)).toMatchObject({ processes: 1, backends: [{ name: 'a', in: true }] });
  expect((await ask('/metrics'))[2]).toContain('sluice_gateway_backend_in{backend="a"} 1');
  expect((await ask('/'))[0]).toBe(404);
  expect((await fetch(new URL('/status.json', url))).status).toBe(404);
  await listening.close();
});
