import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { watchedFrom } from '../../deploys/watch/watched.ts';
import { upgradeProgram } from '../../localnet/upgrade.ts';
import { urlOf } from '../../shared/config/config.ts';
import { loadConfig } from '../../shared/config/load.ts';
import { codeOf, fileReason } from '../../shared/store/private.ts';
import { command, done, failed, type Outcome } from '../frame/command.ts';

export const programsCheck = command(
  'programs check [FILE]',
  'Validate a list of programs (default: the one of the config).',
  ({ operands: [file], values, world }) => {
    if (file !== undefined) return checked(file);
    const loaded = loadConfig(values.config, world.env);
    if (loaded.kind === 'unusable') return failed(...loaded.lines);
    return checked(loaded.config.deploys.programsPath ?? join(world.root, 'deploys/watch/programs.json'));
  },
);

function checked(file: string): Outcome {
  const json = readJson(file);
  if ('sentence' in json) return unusable(file, [json.sentence]);
  const watched = watchedFrom(json.value);
  if (watched.kind === 'problems')
    return unusable(
      file,
      watched.lines.map((line) => `${file}: ${line}`),
    );
  const programs = watched.programs.length;
  return done(`OK: ${file}: ${programs} programs.`, { ok: true, file, programs });
}

function unusable(file: string, lines: readonly string[]): Outcome {
  return { kind: 'failed', lines, objects: [{ ok: false, file, problems: lines }] };
}

function readJson(file: string): Readonly<{ value: unknown }> | Readonly<{ sentence: string }> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    return { sentence: `The list of programs ${file} cannot be read (${codeOf(error)}).` };
  }
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { sentence: `The list of programs ${file} is not valid JSON: ${fileReason(error)}` };
  }
}

export const localnetUpgrade = command(
  'localnet upgrade PROGRAM_ID',
  'Redeploy a program on the running localnet with a real loader transaction.',
  async ({ operands, values, world }) => {
    const loaded = loadConfig(values.config, world.env);
    if (loaded.kind === 'unusable') return failed(...loaded.lines);
    const outcome = await upgradeProgram({
      rpcUrl: urlOf(loaded.config.localnet.listen).href,
      programId: operands[0] ?? '',
      clock: world.clock,
      signal: new AbortController().signal,
    });
    if (outcome.kind !== 'upgraded') return failed(outcome.sentence);
    const { programId, previousSlot, deploySlot } = outcome;
    return done(`Redeployed ${programId}: deploy slot ${previousSlot} -> ${deploySlot}.`, {
      program_id: programId,
      // Slots stay far below 2^53.
      previous_slot: Number(previousSlot),
      deploy_slot: Number(deploySlot),
    });
  },
);
