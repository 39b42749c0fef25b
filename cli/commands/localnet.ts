import { upgradeProgram } from '../../localnet/upgrade.ts';
import { urlOf } from '../../shared/config/config.ts';
import { loadConfig } from '../../shared/config/load.ts';
import { type Command, failed } from '../command.ts';

export const localnetUpgrade: Command = {
  words: 'localnet upgrade',
  operands: ['PROGRAM_ID'],
  options: ['config', 'json'],
  summary: 'Redeploy a program of the running localnet with a real loader transaction.',
  act: async ({ operands, values, world }) => {
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
    const record = {
      program_id: programId,
      // Slots stay far below 2^53.
      previous_slot: Number(previousSlot),
      deploy_slot: Number(deploySlot),
    };
    const text = `${programId} was redeployed: slot ${previousSlot} before, ${deploySlot} now.\n`;
    return { kind: 'done', objects: [record], text };
  },
};
