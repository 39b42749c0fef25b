import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { watchedFrom } from '../../deploys/watch/watched.ts';
import { unreachable } from '../../shared/brand.ts';
import { loadConfig } from '../../shared/config/load.ts';
import { type Command, failed, type Invocation, type Outcome } from '../command.ts';

export const programsCheck: Command = {
  words: 'programs check',
  operands: ['[FILE]'],
  options: ['config', 'json'],
  summary: 'Say everything that is wrong with a list of programs (default: the one of the config).',
  act: (invocation) => {
    const file = invocation.operands[0] ?? configured(invocation);
    return typeof file === 'string' ? checked(file) : file;
  },
};

function configured({ values, world }: Invocation): string | Outcome {
  const loaded = loadConfig(values.config, world.env);
  if (loaded.kind === 'unusable') return failed(...loaded.lines);
  return loaded.config.deploys.programsPath ?? join(world.root, 'deploys/watch/programs.json');
}

function checked(file: string): Outcome {
  const json = readJson(file);
  if (json.kind === 'unreadable') return unusable(file, [json.sentence]);
  const watched = watchedFrom(json.value);
  switch (watched.kind) {
    case 'watched': {
      const programs = watched.programs.length;
      const text = `OK: ${file}: ${programs} programs.\n`;
      return { kind: 'done', objects: [{ ok: true, file, programs }], text };
    }
    case 'problems':
      return unusable(
        file,
        watched.lines.map((line) => `${file}: ${line}`),
      );
    default:
      return unreachable(watched);
  }
}

function unusable(file: string, lines: readonly string[]): Outcome {
  return { kind: 'failed', lines, objects: [{ ok: false, file, problems: lines }] };
}

type ReadJson =
  | { readonly kind: 'read'; readonly value: unknown }
  | { readonly kind: 'unreadable'; readonly sentence: string };

function readJson(file: string): ReadJson {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return { kind: 'unreadable', sentence: `The list of programs ${file} cannot be read (${code}).` };
  }
  try {
    return { kind: 'read', value: JSON.parse(text) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'unreadable', sentence: `The list of programs ${file} is not valid JSON: ${reason}` };
  }
}
