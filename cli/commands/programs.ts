import { join } from 'node:path';
import { readWatched } from '../../shared/watched.ts';
import { urlOf } from '../../shared/config/config.ts';
import { loadConfig } from '../../shared/config/load.ts';
import { onConfig } from '../frame/books.ts';
import { command, done, failed, type Outcome } from '../frame/command.ts';

export const programsCheck = command(
  'programs check [FILE]',
  'Validate a list of programs (default: the one of the config).',
  ({ operands: [file], options, world }) => {
    if (file !== undefined) return checked(file);
    const loaded = loadConfig(options.config, world.env);
    if (loaded.kind === 'unusable') return failed(...loaded.lines);
    return checked(loaded.config.deploys.programsPath ?? join(world.root, 'shared/programs.json'));
  },
);

function checked(file: string): Outcome {
  const watched = readWatched(file);
  if (watched.kind === 'problems') {
    const { lines } = watched;
    return { kind: 'failed', lines, objects: [{ ok: false, file, problems: lines }] };
  }
  const programs = watched.programs.length;
  return done(`OK: ${file}: ${programs} programs.`, { ok: true, file, programs });
}

export const localnetUpgrade = onConfig(
  'localnet upgrade PROGRAM_ID',
  'Redeploy a program on the running localnet with a real loader transaction.',
  async ({ localnet }, { operands: [program = ''], world }) => {
    // Its packages are no part of a production install.
    const upgrade = await import('../../localnet/upgrade.ts').catch(() => undefined);
    if (upgrade === undefined)
      return failed('The packages of localnet/ are not installed: run "bun install".');
    const outcome = await upgrade.upgradeProgram({
      rpcUrl: urlOf(localnet.listen).href,
      programId: program,
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
