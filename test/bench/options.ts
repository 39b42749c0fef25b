import { argumentsFrom, type Options } from '../../bench/arguments.ts';

/** The options of a command as its arguments give them: one call to an address of this machine, and `argv`. */
export function optionsOf<C extends Options['command']>(command: C, ...argv: string[]) {
  const parsed = argumentsFrom([command, '--url', 'http://127.0.0.1:8899', '--calls', '1', ...argv]);
  if (parsed.kind !== 'run') throw new Error(JSON.stringify(parsed));
  return parsed.options as Extract<Options, { command: C }>; // the command is the one that was given
}
