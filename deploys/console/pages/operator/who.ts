import type { Entry } from '../../../audit/audit.ts';
import type { PageDeps } from '../../page-services.ts';
import { accountPath, userPath } from '../../paths.ts';

/** Who made a change, in words; `to` leads to them where there is a page. */
export type Who = Readonly<{ text: string; note: string | undefined; to?: string | undefined }>;

export type WhoOf = (entry: Pick<Entry, 'actorKind' | 'actorId'>) => Who;

/** Names who made changes: a user by e-mail, a key by its name. Each is looked up once. */
export function createWhoOf({ people, keys }: Pick<PageDeps, 'people' | 'keys'>): WhoOf {
  const known = new Map<string, Who>();

  function look(kind: Entry['actorKind'], id: string): Who {
    if (kind === 'key') {
      const key = keys.find(id);
      const note = key === undefined ? 'key' : `key of ${key.account}`;
      return { text: key?.name ?? id, note, to: key && accountPath(key.accountId) };
    }
    const user = people.users.byId(id);
    const note = kind === 'operator' ? 'operator' : undefined;
    if (user === undefined) return { text: id, note: note === undefined ? 'removed' : `${note}, removed` };
    return { text: user.email, note, to: userPath(id) };
  }

  return function whoOf({ actorKind, actorId }) {
    if (actorId === null) return { text: 'command line', note: undefined };
    const name = `${actorKind} ${actorId}`;
    const who = known.get(name) ?? look(actorKind, actorId);
    known.set(name, who);
    return who;
  };
}
