import { describe, expect, test } from 'bun:test';
import { installSystemPackages, SYSTEM_PROGRAMS } from '../../../cli/verify/system-packages.ts';

/** A machine with these commands; `installs` says what apt-get can bring, `fails` which commands fail. */
function machine(options: Readonly<{ has: string[]; root?: boolean; installs?: string[]; fails?: RegExp }>) {
  const present = new Set(options.has);
  const ran: string[] = [];
  return {
    ran,
    has: (command: string) => present.has(command),
    isRoot: options.root ?? true,
    run: async (_: string, command: readonly string[]) => {
      const line = command.join(' ');
      ran.push(line);
      const name = command.at(-1) ?? '';
      if (options.fails?.test(line)) return false;
      if (line.includes(' install ') && options.installs?.includes(name)) present.add(name);
      return true;
    },
  };
}

const APT = 'env DEBIAN_FRONTEND=noninteractive apt-get -q';

describe('system packages', () => {
  test('that are there are left alone, under any of their names', async () => {
    const full = machine({ has: ['redis-server', 'google-chrome', 'apt-get'] });
    expect(await installSystemPackages(SYSTEM_PROGRAMS, full)).toEqual([]);
    expect(full.ran).toEqual([]);
  });
  test('are installed as root, only those that are missing', async () => {
    const bare = machine({ has: ['apt-get', 'chromium'], installs: ['redis-server'] });
    expect(await installSystemPackages(SYSTEM_PROGRAMS, bare)).toEqual([]);
    expect(bare.ran).toEqual([`${APT} update`, `${APT} install -y --no-install-recommends redis-server`]);
  });
  test('are installed through a sudo that asks no password', async () => {
    const user = machine({ has: ['apt-get', 'sudo', 'chromium'], root: false, installs: ['redis-server'] });
    expect(await installSystemPackages(SYSTEM_PROGRAMS, user)).toEqual([]);
    expect(user.ran[0]).toBe('sudo -n true');
    expect(user.ran.slice(1).every((line) => line.startsWith(`sudo -n ${APT} `))).toBe(true);
  });
  test.each([
    ['without apt-get', machine({ has: [] })],
    ['without root and sudo', machine({ has: ['apt-get'], root: false })],
    [
      'with a sudo that wants a password',
      machine({ has: ['apt-get', 'sudo'], root: false, fails: /sudo -n true/ }),
    ],
    ['when the lists cannot be read', machine({ has: ['apt-get'], fails: /update/ })],
    ['when apt-get brings nothing', machine({ has: ['apt-get'], fails: /install/ })],
  ])('are named %s', async (_, poor) => {
    expect(await installSystemPackages(SYSTEM_PROGRAMS, poor)).toEqual(['redis-server', 'chromium']);
  });
  test('one that cannot be had does not keep the other away', async () => {
    const half = machine({ has: ['apt-get'], installs: ['chromium'], fails: /install .*redis/ });
    expect(await installSystemPackages(SYSTEM_PROGRAMS, half)).toEqual(['redis-server']);
  });
});
