import { readEmail } from '../../../users/email.ts';
import { makePassword } from '../../../users/initial-password.ts';
import type { Action, AskedByViewer } from '../../context.ts';
import type { FormErrors } from '../../components/forms.tsx';
import type { PageDeps } from '../../page-services.ts';
import { seeOther } from '../../redirect.ts';
import { type AccountPageDeps, accountIn, showAccount } from './account.tsx';
import { operatorActor } from './actor.ts';
import { userPath } from '../../paths.ts';
import { USER_ID_FIELD } from './users.tsx';

/** `POST /operator/accounts/:id/users`: a user with a first password, which the user's page shows once. */
export function createAddUser(deps: AccountPageDeps & Pick<PageDeps, 'reveals'>): Action<AskedByViewer> {
  const { people, random, reveals } = deps;
  return async function addUser(asked) {
    const account = accountIn(deps, asked);
    if (account === undefined) return asked.notFound();
    const again = (errors: FormErrors) =>
      showAccount(deps, asked, account, { of: 'user', form: asked.form, errors });
    const email = readEmail(asked.form.get('email') ?? '');
    const id = asked.form.get(USER_ID_FIELD) ?? '';
    if (email === undefined) return again({ email: 'That is no e-mail address.' });
    if (!/^[0-9a-f]{24}$/.test(id)) return again({ form: 'This form is not whole. Open the page anew.' });
    const password = makePassword(random);
    const hashed = await people.hashing.hash(password, 'known');
    if (hashed.kind === 'busy') return again({ form: 'Too many logins are being checked. Try again.' });
    const place = { role: 'customer', accountId: account.id } as const;
    const isMade = people.users.byId(id) !== undefined;
    if (!isMade) {
      const user = { id, email, place, passwordHash: hashed.hash };
      const created = people.users.create(user, operatorActor(asked));
      if (created.kind === 'email-taken') return again({ email: TAKEN });
      reveals.put(asked.viewer.userId, password, id);
    }
    const made = people.users.byId(id);
    if (made?.email !== email || made.accountId !== account.id)
      return again({ form: 'This form was sent before. Open the page anew.' });
    return seeOther(`${userPath(id)}?shown=${id}`, 'user-created');
  };
}

const TAKEN = 'There is a login of this e-mail already. Its page can make a new password.';
