/** @jsxImportSource preact */
import { passwordComplaint } from '../password-rules.ts';
import type { People } from '../people.ts';
import { selfOf } from '../second-factor.ts';
import type { SessionRow } from '../sessions.ts';
import { type Asked, field, type Filled, type PersonPage } from './asked.ts';
import { Complaint, Field, Form, NewPassword } from './form.tsx';
import { moveTo, SECOND_FACTOR_PATH } from './moves.ts';
import { ownPage, type Self } from './own-session.ts';
import { type FormRefusal, notTried, refused } from './refusals.ts';

const SETTINGS_PATH = '/settings';
const PASSWORD_PATH = '/settings/password';

/** `/settings`: the password, the second factor, and where one is signed in. */
export function settingsPages(people: People): readonly PersonPage[] {
  return [
    ownPage(people, SETTINGS_PATH, { get: (asked, self) => show(people, asked, self) }),
    ownPage(people, PASSWORD_PATH, {
      get: () => moveTo(SETTINGS_PATH),
      post: (asked, self) => changePassword(people, asked, self),
    }),
    ownPage(people, '/settings/sign-out-others', {
      get: () => moveTo(SETTINGS_PATH),
      post: (_, { user, session }) => {
        people.users.signOut(user, selfOf(user), session.tokenHash);
        return moveTo(`${SETTINGS_PATH}?done=sessions-ended`);
      },
    }),
  ];
}

async function changePassword(people: People, asked: Filled, self: Self): Promise<Response> {
  const { user, session } = self;
  const confirmed = await people.login.confirm(user, field(asked.form, 'password'));
  if (confirmed.kind === 'too-many' || confirmed.kind === 'busy')
    return show(people, asked, self, notTried(confirmed));
  if (confirmed.kind === 'wrong')
    return show(people, asked, self, { sentence: 'That is not your password.', status: 422 });
  const wanted = field(asked.form, 'new-password');
  const complaint = passwordComplaint(wanted, user.email);
  if (complaint !== undefined) return show(people, asked, self, { sentence: complaint, status: 422 });
  const hashed = await people.hashing.hash(wanted);
  if (hashed.kind === 'busy') return show(people, asked, self, notTried(hashed));
  people.users.setPassword(user, hashed.hash, selfOf(user), session.tokenHash);
  return moveTo(`${SETTINGS_PATH}?done=password-changed`);
}

function show(people: People, asked: Asked, { user, session }: Self, refusal?: FormRefusal): Response {
  const response = asked.show({
    title: 'Settings',
    ...(refusal && { status: refusal.status }),
    body: (
      <>
        <p>
          {user.email}, {user.role}
        </p>
        <section aria-labelledby="password-title">
          <h2 id="password-title">Password</h2>
          <Complaint sentence={refusal?.sentence} />
          {user.passwordHash === undefined ? (
            <p>You sign in through {people.config.oidc?.name ?? 'an identity provider'}.</p>
          ) : (
            <Form action={PASSWORD_PATH} button="Change the password">
              <Field name="password" label="Password now" type="password" autocomplete="current-password" />
              <NewPassword label="New password" />
            </Form>
          )}
        </section>
        <section aria-labelledby="factor-title">
          <h2 id="factor-title">Second factor</h2>
          <p>
            {user.hasSecondFactor ? 'On. ' : 'Off. '}
            <a href={SECOND_FACTOR_PATH}>{user.hasSecondFactor ? 'Turn it off' : 'Set it up'}</a>
          </p>
        </section>
        <section aria-labelledby="sessions-title">
          <h2 id="sessions-title">Where you are signed in</h2>
          <SessionTable rows={people.sessions.list(user.id, session.tokenHash)} />
          <Form action="/settings/sign-out-others" button="Sign out everywhere else" />
        </section>
        <Form action="/logout" button="Sign out" />
      </>
    ),
  });
  return refusal ? refused(response, refusal) : response;
}

function SessionTable({ rows }: Readonly<{ rows: readonly SessionRow[] }>) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">Browser</th>
          <th scope="col">Since</th>
          <th scope="col">Last use</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ userAgent, createdAtMs, usedAtMs, isThis }) => (
          <tr key={createdAtMs}>
            <td>
              {userAgent === '' ? 'unknown' : userAgent}
              {isThis && <strong> (this one)</strong>}
            </td>
            <td>
              <Instant atMs={createdAtMs} />
            </td>
            <td>
              <Instant atMs={usedAtMs} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** To the minute: a use is written down once a minute. */
function Instant({ atMs }: Readonly<{ atMs: number }>) {
  const text = new Date(atMs).toISOString();
  return <time datetime={text}>{`${text.slice(0, 16).replace('T', ' ')} UTC`}</time>;
}
