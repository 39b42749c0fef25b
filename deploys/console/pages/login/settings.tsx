/** @jsxImportSource preact */
import { encode } from 'uqr';
import type { AuthService } from '../../../auth/auth-service.ts';
import { passwordComplaint } from '../../../auth/passwords.ts';
import { totpOf } from '../../../auth/second-factor.ts';
import type { SessionRow } from '../../../auth/sessions.ts';
import { Time } from '../../components/format.tsx';
import { ButtonLink, PostForm } from '../../components/forms.tsx';
import { Badge, type Column, Columns, Panel, TablePanel } from '../../components/panels.tsx';
import { type Content, openPage } from '../../page.ts';
import { paths, redirect, withNext } from '../../paths.ts';
import {
  CodeField,
  field,
  fieldsOf,
  NewPasswordField,
  nextOf,
  notTried,
  PasswordField,
  type Self,
  selfOf,
} from './sign-in.tsx';

/** The password, the second factor, and where one is signed in. */
export const settingsPage = openPage({
  path: paths.settings,
  isReloaded: true,
  find: selfOf,
  show({ auth }, _, { user, session }) {
    const { oidc } = auth.config;
    const sessions = auth.sessions.list(user.id, session.tokenHash);
    const isOn = user.hasSecondFactor;
    return {
      title: 'Settings',
      body: [
        <p>
          {user.email} <Badge tone="quiet">{user.role}</Badge>
        </p>,
        <Columns>
          <Panel title="Password" id="password-panel">
            {user.passwordHash === undefined ? (
              <p>You sign in with {oidc?.name ?? 'an identity provider'}.</p>
            ) : (
              <PostForm action={paths.password} button="Change password" kind="primary">
                <PasswordField label="Current password" />
                <NewPasswordField label="New password" />
              </PostForm>
            )}
            {oidc && user.subject === undefined && (
              <ButtonLink to={withNext(paths.provider, paths.settings)} text={`Link ${oidc.name}`} />
            )}
          </Panel>
          <Panel
            title="Two-factor authentication"
            aside={isOn ? <Badge tone="good">On</Badge> : <Badge tone="quiet">Off</Badge>}
          >
            <p>Require a code from an authenticator app, so a stolen password isn't enough.</p>
            <ButtonLink to={paths.secondFactor} text={isOn ? 'Turn off' : 'Set up'} />
          </Panel>
        </Columns>,
        <TablePanel
          title="Active sessions"
          id="sessions"
          aside={
            sessions.length > 1 && (
              <PostForm action={paths.otherSessions} button="Sign out all other sessions" isInline />
            )
          }
          columns={SESSION_COLUMNS}
          rows={sessions}
          empty={<p>No active sessions.</p>}
        />,
      ],
    };
  },
  forms: {
    /** Sets a new password, with the one that holds now. */
    async '/password'({ auth }, { form }, { user, session, actor }) {
      const confirmed = await auth.login.confirm(user, field(form, 'password'));
      if (confirmed.kind === 'too-many' || confirmed.kind === 'busy') return notTried(confirmed);
      if (confirmed.kind === 'wrong') return { errors: { password: 'Incorrect password.' } };
      const wanted = field(form, 'new-password');
      const complaint = passwordComplaint(wanted, user.email);
      if (complaint !== undefined) return { errors: { 'new-password': complaint } };
      const hashed = await auth.hashing.hash(wanted, 'known');
      if (hashed.kind === 'busy') return notTried(hashed);
      auth.users.setPassword(user, hashed.hash, actor, session.tokenHash);
      return redirect(paths.settings, 'password-changed');
    },
    /** Ends every session but this one. */
    '/sign-out-others'({ auth }, _, { user, session, actor }) {
      auth.users.signOut(user, actor, session.tokenHash);
      return redirect(paths.settings, 'sessions-ended');
    },
  },
});

const SESSION_COLUMNS: readonly Column<SessionRow>[] = [
  [
    'Browser',
    ({ userAgent, isThis }) => (
      <>
        <span class="agent">{userAgent === '' ? 'Unknown' : userAgent}</span>{' '}
        {isThis && <Badge tone="accent">This session</Badge>}
      </>
    ),
    'head',
  ],
  ['Signed in', ({ createdAtMs }) => <Time atMs={createdAtMs} />],
  // A use is written down once a minute.
  ['Last used', ({ usedAtMs }) => <Time atMs={usedAtMs} />],
];

const CRUMBS = [['Settings', paths.settings]] as const;

const WRONG = { errors: { code: 'This code is incorrect or expired. Try the next one.' } };

/** To set the second factor up, and to turn it off. */
export const secondFactorPage = openPage({
  path: paths.secondFactor,
  isReloaded: true,
  find: selfOf,
  show: ({ auth }, context, self) => ({
    title: 'Two-factor authentication',
    crumbs: CRUMBS,
    body: self.user.hasSecondFactor ? turnOff() : setUp(auth, self, nextOf(fieldsOf(context))),
  }),
  forms: {
    /** Makes a secret that waits for its first code. */
    ''({ auth }, { form }, { user }) {
      // A stolen session must not be able to exchange the factor that is there.
      if (!user.hasSecondFactor) auth.secondFactor.begin(user);
      return redirect(withNext(paths.secondFactor, nextOf(form)));
    },
    /** Turns it on and shows the backup codes in this one answer: there is no other time. */
    '/confirm'({ auth }, { form }, { user, session }) {
      if (user.hasSecondFactor) return redirect(paths.secondFactor);
      const codes = auth.secondFactor.confirm(user, field(form, 'code'), session.tokenHash);
      return codes === undefined ? WRONG : backupCodes(codes, nextOf(form));
    },
    /** Turns it off, with a code. */
    '/off'({ auth }, { form }, { user, actor }) {
      if (!user.hasSecondFactor) return redirect(paths.secondFactor);
      const result = auth.login.confirmCode(user, field(form, 'code'));
      if (result.kind === 'too-many') return notTried(result);
      if (result.kind === 'wrong') return WRONG;
      auth.secondFactor.reset(user, actor);
      return redirect(paths.settings, 'second-factor-off');
    },
  },
});

function backupCodes(codes: readonly string[], next: string): Content {
  return {
    title: 'Two-factor authentication is on',
    crumbs: CRUMBS,
    body: (
      <Panel title="Backup codes">
        <p>
          Store these backup codes in a safe place, separate from your phone. Each can be used once to sign in
          if you lose your phone. You won't see them again.
        </p>
        <ul class="backup-codes">
          {codes.map((code) => (
            <li>
              <code>{code}</code>
            </li>
          ))}
        </ul>
        <ButtonLink to={next} kind="primary" text="I have saved them" />
      </Panel>
    ),
  };
}

function turnOff() {
  return (
    <Panel title="Turn off" isDanger>
      <p>Your password alone will then be enough to sign in.</p>
      <PostForm
        action={`${paths.secondFactor}/off`}
        button="Turn off two-factor authentication"
        kind="danger"
      >
        <CodeField hint="From your authenticator app, or a backup code." />
      </PostForm>
    </Panel>
  );
}

function setUp(auth: AuthService, { user, session }: Self, next: string) {
  const secret = auth.secondFactor.pending(user);
  if (secret === undefined) {
    return (
      <Panel title="Set up">
        <p>
          Require a code from an authenticator app, so a stolen password isn't enough.
          {auth.mustEnrol(session) && ' Required for operators of this service.'}
        </p>
        <PostForm
          action={paths.secondFactor}
          button="Set up two-factor authentication"
          kind="primary"
          hidden={{ next }}
          beside={!auth.mustEnrol(session) && <ButtonLink to={next} kind="quiet" text="Not now" />}
        />
      </Panel>
    );
  }
  const totp = totpOf(secret, user.email);
  return (
    <Panel title="Set up">
      <p>Scan this QR code with an authenticator app, then enter the code it shows.</p>
      <QrCode text={totp.toString()} label="QR code of the setup key below" />
      <p>
        Can't scan it? Enter this setup key: <code class="totp-key">{totp.secret.base32}</code>
      </p>
      <PostForm action={`${paths.secondFactor}/confirm`} button="Turn on" kind="primary" hidden={{ next }}>
        <CodeField />
      </PostForm>
    </Panel>
  );
}

/** Modules of white around the code, as the standard requires. */
const QUIET = 4;

/** A QR code of `text`, drawn here so that it reaches no other service. Dark on light in both themes, for cameras. */
function QrCode({ text, label }: Readonly<{ text: string; label: string }>) {
  const { data, size } = encode(text, { ecc: 'M', border: QUIET });
  const path = data
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
    .join('');
  return (
    <svg
      class="qr"
      role="img"
      aria-label={label}
      width="240"
      height="240"
      viewBox={`0 0 ${size} ${size}`}
      shape-rendering="crispEdges"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
