import { unreachable } from '../../../../shared/brand.ts';
import { TOO_MANY_KEYS } from '../../../accounts/keys.ts';
import type { Action, AskedOfAccount } from '../../context.ts';
import { byOf } from '../../by.ts';
import { formIdFrom, isConfirmed } from '../../components/forms.tsx';
import { seeOther } from '../../redirect.ts';
import { BAD_KEY_NAME, STALE_FORM } from './key-texts.tsx';
import { GRACES } from './one-forms.tsx';
import { type KeyPageDeps, showKey } from './one.tsx';
import { keyPath } from '../../paths.ts';

/** `POST /keys/:keyId/rename`. */
export function createRenameAction(deps: KeyPageDeps): Action<AskedOfAccount> {
  return function renameKey(asked) {
    const { account, form, params } = asked;
    const id = params['keyId'] ?? '';
    const result = deps.keys.rename(id, (form.get('name') ?? '').trim(), byOf(asked).actor, account.id);
    switch (result.kind) {
      case 'renamed':
        return seeOther(keyPath(account, id), 'key-renamed');
      case 'bad-name':
        return showKey(deps, asked, { rename: { name: BAD_KEY_NAME } });
      case 'reserved-name':
        return showKey(deps, asked, { rename: { name: 'The service knows this key by its name.' } });
      case 'unknown-key':
        return asked.notFound();
      default:
        return unreachable(result);
    }
  };
}

/** `POST /keys/:keyId/rotate`: leads to the page of the new key, which shows it. */
export function createRotateAction(deps: KeyPageDeps): Action<AskedOfAccount> {
  return function rotateKey(asked) {
    const { account, form, params, viewer } = asked;
    const id = params['keyId'] ?? '';
    const [once, grace] = [formIdFrom(form), form.get('grace') ?? ''];
    if (once === undefined) return showKey(deps, asked, { rotate: { form: STALE_FORM } });
    if (!isGrace(grace)) return showKey(deps, asked, { rotate: { form: 'Choose when the old key ends.' } });
    const result = deps.keys.rotate(id, GRACES[grace], byOf(asked).actor, account.id, once);
    switch (result.kind) {
      case 'rotated':
        deps.reveals.put(viewer.userId, result.made.key, once);
        return seeOther(`${keyPath(account, result.made.id)}?shown=${once}`, 'key-rotated');
      case 'made-before':
        return seeOther(`${keyPath(account, result.id)}?shown=${once}`);
      case 'too-many':
        return showKey(deps, asked, { rotate: { form: TOO_MANY_KEYS } });
      case 'ended':
        return showKey(deps, asked, { rotate: { form: `The key is ${result.state}.` } });
      case 'unknown-key':
        return asked.notFound();
      default:
        return unreachable(result);
    }
  };
}

/** `POST /keys/:keyId/revoke`, with the key's name typed. */
export function createRevokeAction(deps: KeyPageDeps): Action<AskedOfAccount> {
  return function revokeKey(asked) {
    const { account, form, params } = asked;
    const id = params['keyId'] ?? '';
    const row = deps.keys.find(id, account.id);
    if (row === undefined) return asked.notFound();
    if (!isConfirmed(form, row.name))
      return showKey(deps, asked, { revoke: { confirm: `Type the name of the key: ${row.name}` } });
    deps.keys.revoke(id, byOf(asked).actor, account.id);
    return seeOther(keyPath(account, id), 'key-revoked');
  };
}

function isGrace(text: string): text is keyof typeof GRACES {
  return Object.hasOwn(GRACES, text);
}
