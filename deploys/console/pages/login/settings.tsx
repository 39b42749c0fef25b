/** @jsxImportSource preact */
import { Time } from '../../components/format.tsx';
import { ButtonLink } from '../../components/forms.tsx';
import { Badge } from '../../components/icons.tsx';
import { Columns, Panel } from '../../components/panels.tsx';
import { Table } from '../../components/table.tsx';
import {
  type Asked,
  errorAt,
  field,
  Field,
  type Filled,
  Form,
  type FormRefusal,
  NewPassword,
  notTried,
  type PersonPage,
  refused,
} from './login-form.tsx';
import { moveTo, ownPage, PROVIDER_PATH, SECOND_FACTOR_PATH, type Self, withNext } from './session.ts';
import { passwordComplaint } from '../../../users/password-rules.ts';
import type { People } from '../../../users/people.ts';
import { selfOf } from '../../../users/second-factor.ts';
import type { SessionRow } from '../../../users/sessions.ts';

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
    return show(people, asked, self, {
      sentence: 'That is not your password.',
      status: 422,
      field: 'password',
    });
  const wanted = field(asked.form, 'new-password');
  const complaint = passwordComplaint(wanted, user.email);
  if (complaint !== undefined)
    return show(people, asked, self, { sentence: complaint, status: 422, field: 'new-password' });
  const hashed = await people.hashing.hash(wanted, 'known');
  if (hashed.kind === 'busy') return show(people, asked, self, notTried(hashed));
  people.users.setPassword(user, hashed.hash, selfOf(user), session.tokenHash);
  return moveTo(`${SETTINGS_PATH}?done=password-changed`);
}

function show(people: People, asked: Asked, { user, session }: Self, refusal?: FormRefusal): Response {
  const sessions = people.sessions.list(user.id, session.tokenHash);
  const response = asked.show({
    title: 'Settings',
    ...(refusal && { status: refusal.status }),
    body: (
      <>
        <p>
          {user.email} <Badge tone="quiet">{user.role}</Badge>
        </p>
        <Columns>
          <PasswordPanel people={people} user={user} refusal={refusal} />
          <FactorPanel isOn={user.hasSecondFactor} />
        </Columns>
        <Panel
          title="Where you are signed in"
          id="sessions"
          isFlush
          aside={
            sessions.length > 1 && (
              <Form action="/settings/sign-out-others" button="Sign out everywhere else" kind="plain" />
            )
          }
        >
          <SessionTable rows={sessions} />
        </Panel>
      </>
    ),
  });
  return refusal ? refused(response, refusal) : response;
}

type PasswordProps = Readonly<{ people: People; user: Self['user']; refusal: FormRefusal | undefined }>;

function PasswordPanel({ people, user, refusal }: PasswordProps) {
  const errors = refusal && { [refusal.field ?? 'form']: refusal.sentence };
  return (
    <Panel title="Password" id="password-panel">
      {user.passwordHash === undefined ? (
        <p>You sign in through {people.config.oidc?.name ?? 'an identity provider'}.</p>
      ) : (
        <Form action={PASSWORD_PATH} button="Change the password" errors={errors}>
          <Field
            name="password"
            label="Password now"
            type="password"
            autocomplete="current-password"
            error={errorAt(refusal, 'password')}
          />
          <NewPassword label="New password" error={errorAt(refusal, 'new-password')} />
        </Form>
      )}
      {people.config.oidc && user.subject === undefined && (
        <ButtonLink to={withNext(PROVIDER_PATH, SETTINGS_PATH)}>Link {people.config.oidc.name}</ButtonLink>
      )}
    </Panel>
  );
}

function FactorPanel({ isOn }: Readonly<{ isOn: boolean }>) {
  return (
    <Panel
      title="Second factor"
      aside={isOn ? <Badge tone="good">On</Badge> : <Badge tone="quiet">Off</Badge>}
    >
      <p>
        A code of an app on your phone beside the password, so that a stolen password alone opens nothing.
      </p>
      <ButtonLink to={SECOND_FACTOR_PATH}>{isOn ? 'Turn it off' : 'Set it up'}</ButtonLink>
    </Panel>
  );
}

function SessionTable({ rows }: Readonly<{ rows: readonly SessionRow[] }>) {
  return (
    <Table
      caption="Where you are signed in"
      columns={[
        {
          label: 'Browser',
          isRowHead: true,
          cell: ({ userAgent, isThis }) => (
            <>
              <span class="agent">{userAgent === '' ? 'unknown' : userAgent}</span>{' '}
              {isThis && <Badge tone="accent">this one</Badge>}
            </>
          ),
        },
        { label: 'Since', cell: ({ createdAtMs }) => <Time atMs={createdAtMs} /> },
        // A use is written down once a minute.
        { label: 'Last use', cell: ({ usedAtMs }) => <Time atMs={usedAtMs} /> },
      ]}
      rows={rows}
      keyOf={({ createdAtMs }) => createdAtMs}
      empty={<p>Nowhere.</p>}
    />
  );
}
