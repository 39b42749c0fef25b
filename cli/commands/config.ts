import { plansInUse, requestReload } from '../../shared/keys/reload.ts';
import type { Config } from '../../shared/config/config.ts';
import { blankComplaint, loadConfig, readConfig } from '../../shared/config/load.ts';
import { lostPlans } from '../../shared/config/reload.ts';
import { withBooks } from '../books.ts';
import { type Command, failed } from '../command.ts';
import { fileProblems, notesOn, notesOnRedis } from '../config-notes.ts';

const LOST_PLAN = 'Apps that had it reload nothing; once restarted they refuse the keys with 401.';

export const configCheck: Command = {
  words: 'config check',
  operands: ['[FILE]'],
  options: ['config', 'json'],
  summary: 'Say everything that is wrong with a config, or what it means.',
  act: async ({ operands, values, world }) => {
    if (operands[0] !== undefined && values.config !== undefined)
      return failed('config check takes FILE or --config FILE, not both.');
    const loaded = loadConfig(operands[0] ?? values.config, world.env);
    if (loaded.kind === 'unusable')
      return { kind: 'failed', lines: loaded.lines, objects: [{ ok: false, problems: loaded.lines }] };
    const problems = fileProblems(loaded.config);
    if (problems.length > 0) return { kind: 'failed', lines: problems, objects: [{ ok: false, problems }] };
    const notes = [...notesOn(loaded.config), ...(await notesOnRedis(loaded.config, world.clock))];
    const lines = [
      `OK: ${loaded.read.name}: ${summaryOf(loaded.config)}.`,
      ...notes.map((note) => `Note: ${note}`),
    ];
    const record = { ok: true, source: loaded.read.name, notes };
    return { kind: 'done', objects: [record], text: `${lines.join('\n')}\n` };
  },
};

export const configReload: Command = {
  words: 'config reload',
  operands: [],
  options: ['config', 'json'],
  summary: 'Check the config and have running apps read plans and credits again.',
  act: (invocation) => {
    const reading = readConfig(invocation.values.config);
    const blank = reading.kind === 'read' ? blankComplaint(reading.read) : undefined;
    if (blank !== undefined) return failed(blank);
    return withBooks(invocation, ({ store, config }) => {
      const revision = requestReload(store);
      const used = plansInUse(store);
      const gone = [...used.keys()].filter((plan) => !config.plans.has(plan));
      const lines = [
        'The config is fine; running apps read its plans and credits within a second.',
        ...lostPlans(gone, used).map((lost) => `Note: ${lost} ${LOST_PLAN}`),
      ];
      return { kind: 'done', objects: [{ config_revision: revision }], text: `${lines.join('\n')}\n` };
    });
  },
};

function summaryOf({ backends, plans, prices, gateway, deploys, storage }: Config): string {
  const names = backends.map(({ name }) => name).join(', ');
  return [
    backends.length === 0 ? 'the embedded localnet as the backend' : `backends ${names}`,
    `plans ${[...plans.keys()].join(', ')}`,
    `${prices.methods.size} methods priced apart from the default of ${prices.default}`,
    `gateway on ${shown(gateway.listen)}`,
    `deploys on ${shown(deploys.listen)}`,
    `data in ${storage.dataDir}`,
  ].join('; ');
}

function shown({ hostname, port }: Config['gateway']['listen']): string {
  return `${hostname.includes(':') ? `[${hostname}]` : hostname}:${port}`;
}
