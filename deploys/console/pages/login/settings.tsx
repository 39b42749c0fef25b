/** @jsxImportSource preact */
import { encode } from 'uqr';
import { actorOf } from '../../../accounts/audit.ts';
import type { AuthService } from '../../../auth/auth-service.ts';
import { passwordComplaint } from '../../../auth/passwords.ts';
import { totpOf } from '../../../auth/second-factor.ts';
import type { SessionRow } from '../../../auth/sessions.ts';
import { Time } from '../../components/format.tsx';
import { ButtonLink, type FormErrors, PostForm } from '../../components/forms.tsx';
import { Badge, type Column, Columns, Panel, TablePanel } from '../../components/panels.tsx';
import type { Answer, FormContext, PageContext } from '../../context.ts';
import type { LoginServices } from '../../page-services.ts';
import { paths, redirect, withNext } from '../../paths.ts';
import {
  CodeField,
  field,
  type FormRefusal,
  forSelf,
  NewPasswordField,
  nextOf,
  notTried,
  PasswordField,
  type Self,
} from './sign-in.tsx';

/** The password, the second factor, and where one is signed in. */
export function settingsPage(services: LoginServices, context: PageContext): Answer {
  return forSelf(services, context, (self) => show(services.auth, context, self));
}

/** Ends every session but this one. */
export function signOutOthers(services: LoginServices, context: FormContext): Answer {
  return forSelf(services, context, ({ user, session }) => {
    services.auth.users.signOut(user, actorOf(user.id, user.role), session.tokenHash);
    return redirect(paths.settings, 'sessions-ended');
  });
}

/** Sets a new password, with the one that holds now. */
export function changePassword(services: LoginServices, context: FormContext): Answer {
  const { users, login, hashing } = services.auth;
  return forSelf(services, context, async (self) => {
    const { user, session } = self;
    const again = (refusal: FormRefusal) => show(services.auth, context, self, refusal);
    const confirmed = await login.confirm(user, field(context.form, 'password'));
    if (confirmed.kind === 'too-many' || confirmed.kind === 'busy') return again(notTried(confirmed));
    if (confirmed.kind === 'wrong')
      return again({ errors: { password: 'Incorrect password.' }, status: 422 });
    const wanted = field(context.form, 'new-password');
    const complaint = passwordComplaint(wanted, user.email);
    if (complaint !== undefined) return again({ errors: { 'new-password': complaint }, status: 422 });
    const hashed = await hashing.hash(wanted, 'known');
    if (hashed.kind === 'busy') return again(notTried(hashed));
    users.setPassword(user, hashed.hash, actorOf(user.id, user.role), session.tokenHash);
    return redirect(paths.settings, 'password-changed');
  });
}

function show(auth: AuthService, context: PageContext, self: Self, refusal?: FormRefusal): Response {
  const { user, session } = self;
  const { oidc } = auth.config;
  const sessions = auth.sessions.list(user.id, session.tokenHash);
  const isOn = user.hasSecondFactor;
  return context.show({
    ...refusal,
    title: 'Settings',
    body: (
      <>
        <p>
          {user.email} <Badge tone="quiet">{user.role}</Badge>
        </p>
        <Columns>
          <Panel title="Password" id="password-panel">
            {user.passwordHash === undefined ? (
              <p>You sign in with {oidc?.name ?? 'an identity provider'}.</p>
            ) : (
              <PostForm
                action={paths.password}
                button="Change password"
                kind="primary"
                errors={refusal?.errors}
              >
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
        </Columns>
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
        />
      </>
    ),
  });
}

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

const WRONG: FormRefusal = {
  errors: { code: 'This code is incorrect or expired. Try the next one.' },
  status: 422,
};

/** To set it up, and to turn it off. */
export function secondFactorPage(services: LoginServices, context: PageContext): Answer {
  return forSelf(services, context, (self) => showFactor(services.auth, context, self));
}

/** Makes a secret that waits for its first code. */
export function beginSecondFactor(services: LoginServices, context: FormContext): Answer {
  return forSelf(services, context, ({ user }) => {
    // A stolen session must not be able to exchange the factor that is there.
    if (!user.hasSecondFactor) services.auth.secondFactor.begin(user);
    return redirect(withNext(paths.secondFactor, nextOf(context.form)));
  });
}

/** Turns it off, with a code. */
export function turnSecondFactorOff(services: LoginServices, context: FormContext): Answer {
  const { login, secondFactor } = services.auth;
  return forSelf(services, context, (self) => {
    const { user } = self;
    const result = login.confirmCode(user, field(context.form, 'code'));
    if (result.kind === 'too-many') return showFactor(services.auth, context, self, notTried(result));
    if (result.kind === 'wrong') return showFactor(services.auth, context, self, WRONG);
    secondFactor.reset(user, actorOf(user.id, user.role));
    return redirect(paths.settings, 'second-factor-off');
  });
}

/** Turns it on and shows the backup codes in this one answer: there is no other time. */
export function confirmSecondFactor(services: LoginServices, context: FormContext): Answer {
  const { secondFactor } = services.auth;
  return forSelf(services, context, (self) => {
    const { user, session } = self;
    if (user.hasSecondFactor) return redirect(paths.secondFactor);
    const codes = secondFactor.confirm(user, field(context.form, 'code'), session.tokenHash);
    if (codes === undefined) return showFactor(services.auth, context, self, WRONG);
    return showBackupCodes(context, codes, nextOf(context.form));
  });
}

function showBackupCodes({ show: showPage }: PageContext, codes: readonly string[], next: string): Response {
  return showPage({
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
  });
}

function showFactor(auth: AuthService, context: PageContext, self: Self, refusal?: FormRefusal): Response {
  const { user } = self;
  const next = nextOf(context.url.searchParams);
  return context.show({
    ...refusal,
    title: 'Two-factor authentication',
    crumbs: CRUMBS,
    body: user.hasSecondFactor ? turnOff(refusal?.errors) : setUp(auth, self, next, refusal?.errors),
  });
}

function turnOff(errors: FormErrors | undefined) {
  return (
    <Panel title="Turn off" isDanger>
      <p>Your password alone will then be enough to sign in.</p>
      <PostForm
        action={`${paths.secondFactor}/off`}
        button="Turn off two-factor authentication"
        kind="danger"
        errors={errors}
      >
        <CodeField hint="From your authenticator app, or a backup code." />
      </PostForm>
    </Panel>
  );
}

function setUp(auth: AuthService, { user, session }: Self, next: string, errors: FormErrors | undefined) {
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
      <PostForm
        action={`${paths.secondFactor}/confirm`}
        button="Turn on"
        kind="primary"
        hidden={{ next }}
        errors={errors}
      >
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
