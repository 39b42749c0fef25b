/** A program that the tests drive, the names it goes by and the Debian package that brings it. */
export type SystemProgram = Readonly<{ names: readonly string[]; package: string }>;

export const SYSTEM_PROGRAMS: readonly SystemProgram[] = [
  { names: ['redis-server'], package: 'redis-server' },
  { names: ['chromium', 'chromium-browser', 'google-chrome'], package: 'chromium' },
];

/** What this file asks of the machine. `run` gives whether the command succeeded. */
export type Machine = Readonly<{
  has(command: string): boolean;
  isRoot: boolean;
  run(title: string, command: readonly string[]): Promise<boolean>;
}>;

/**
 * Installs the programs that are missing through apt, as root or with a sudo that asks no password.
 * Gives the packages that are missing still, each to be named to the user. Never rejects.
 */
export async function installSystemPackages(
  programs: readonly SystemProgram[],
  machine: Machine,
): Promise<readonly string[]> {
  const missing = () =>
    programs.filter(({ names }) => !names.some(machine.has)).map((program) => program.package);
  const wanted = missing();
  if (wanted.length === 0 || !machine.has('apt-get')) return wanted;
  const asRoot = machine.isRoot ? [] : ['sudo', '-n'];
  if (!machine.isRoot && !(machine.has('sudo') && (await machine.run('sudo', ['sudo', '-n', 'true']))))
    return wanted;
  const apt = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q'];
  if (!(await machine.run('package lists (apt-get update)', [...apt, 'update']))) return wanted;
  for (const name of wanted)
    await machine.run(`package ${name} (apt-get install)`, [
      ...apt,
      'install',
      '-y',
      '--no-install-recommends',
      name,
    ]);
  return missing();
}
