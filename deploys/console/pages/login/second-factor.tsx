/** @jsxImportSource preact */
import { encode } from 'uqr';
import { ButtonLink, Buttons } from '../../components/forms.tsx';
import { Panel } from '../../components/panels.tsx';
import {
  type Asked,
  Complaint,
  errorAt,
  errorOfForm,
  field,
  Field,
  type Filled,
  Form,
  type FormRefusal,
  notTried,
  type PersonPage,
  refused,
} from './login-form.tsx';
import { moveTo, nextOf, ownPage, SECOND_FACTOR_PATH, type Self, withNext } from './session.ts';
import type { People } from '../../../users/people.ts';
import { selfOf, totpOf } from '../../../users/second-factor.ts';

const CONFIRM_PATH = `${SECOND_FACTOR_PATH}/confirm`;
const OFF_PATH = `${SECOND_FACTOR_PATH}/off`;

const CRUMBS = [{ label: 'Settings', to: '/settings' }];

const WRONG: FormRefusal = {
  sentence: 'This code is wrong, or its time is over. Try the next one.',
  status: 422,
  field: 'code',
};

/** `/settings/second-factor`: to set it up, and to turn it off. */
export function secondFactorPages(people: People): readonly PersonPage[] {
  return [
    ownPage(people, SECOND_FACTOR_PATH, {
      get: (asked, self) => show(people, asked, self),
      post: (asked, { user }) => {
        const next = nextOf(asked.form.get('next'));
        // A stolen session must not be able to exchange the factor that is there.
        if (!user.hasSecondFactor) people.secondFactor.begin(user);
        return moveTo(withNext(SECOND_FACTOR_PATH, next));
      },
    }),
    ownPage(people, CONFIRM_PATH, {
      get: () => moveTo(SECOND_FACTOR_PATH),
      post: (asked, self) => confirm(people, asked, self),
    }),
    ownPage(people, OFF_PATH, {
      get: () => moveTo(SECOND_FACTOR_PATH),
      post: (asked, self) => {
        const { user } = self;
        const result = people.login.confirmCode(user, field(asked.form, 'code'));
        if (result.kind === 'too-many') return show(people, asked, self, notTried(result));
        if (result.kind === 'wrong') return show(people, asked, self, WRONG);
        people.secondFactor.reset(user, selfOf(user));
        return moveTo('/settings?done=second-factor-off');
      },
    }),
  ];
}

/** Turns it on and shows the backup codes in this one answer: there is no other time. */
function confirm(people: People, asked: Filled, self: Self): Response {
  const { user, session } = self;
  if (user.hasSecondFactor) return moveTo(SECOND_FACTOR_PATH);
  const codes = people.secondFactor.confirm(user, field(asked.form, 'code'), session.tokenHash);
  if (codes === undefined) return show(people, asked, self, WRONG);
  return asked.show({
    title: 'The second factor is on',
    crumbs: CRUMBS,
    body: (
      <Panel title="Backup codes">
        <p>
          Keep these backup codes apart from your phone. Each lets you in once when the phone is lost. They
          are not shown again.
        </p>
        <ul class="backup-codes">
          {codes.map((code) => (
            <li key={code}>
              <code>{code}</code>
            </li>
          ))}
        </ul>
        <ButtonLink to={nextOf(asked.form.get('next'))} kind="primary">
          I have stored them
        </ButtonLink>
      </Panel>
    ),
  });
}

function show(people: People, asked: Asked, self: Self, refusal?: FormRefusal): Response {
  const { user } = self;
  const next = nextOf(asked.url.searchParams.get('next'));
  const response = asked.show({
    title: 'Second factor',
    crumbs: CRUMBS,
    ...(refusal && { status: refusal.status }),
    body: (
      <>
        <Complaint sentence={errorOfForm(refusal)} />
        {user.hasSecondFactor ? (
          <TurnOff refusal={refusal} />
        ) : (
          <SetUp people={people} self={self} next={next} refusal={refusal} />
        )}
      </>
    ),
  });
  return refusal ? refused(response, refusal) : response;
}

type Refused = Readonly<{ refusal: FormRefusal | undefined }>;

function TurnOff({ refusal }: Refused) {
  return (
    <Panel title="Turn it off" isDanger>
      <p>After that the password alone opens everything that you may see.</p>
      <Form action={OFF_PATH} button="Turn the second factor off" kind="danger">
        <Field
          name="code"
          label="Code"
          autocomplete="one-time-code"
          hint="Of the app, or a backup code."
          error={errorAt(refusal, 'code')}
        />
      </Form>
    </Panel>
  );
}

type SetUpProps = Refused & Readonly<{ people: People; self: Self; next: string }>;

function SetUp({ people, self, next, refusal }: SetUpProps) {
  const { user, session } = self;
  const secret = people.secondFactor.pending(user);
  if (secret === undefined) {
    return (
      <Panel title="Set it up">
        <p>
          A code of an app on your phone beside the password, so that a stolen password alone opens nothing.
          {people.mustEnrol(session) && ' Operators of this service need one.'}
        </p>
        <Buttons>
          <Form action={SECOND_FACTOR_PATH} button="Set up the second factor" hidden={{ next }} />
          {!people.mustEnrol(session) && (
            <ButtonLink to={next} kind="quiet">
              Not now
            </ButtonLink>
          )}
        </Buttons>
      </Panel>
    );
  }
  const totp = totpOf(secret, user.email);
  return (
    <Panel title="Set it up">
      <p>Scan this with an authenticator app, then type the code that it shows.</p>
      <QrCode text={totp.toString()} label="QR code of the key below" />
      <p>
        Without a camera, type this key: <code class="totp-key">{totp.secret.base32}</code>
      </p>
      <Form action={CONFIRM_PATH} button="Turn it on" hidden={{ next }}>
        <Field name="code" label="Code" autocomplete="one-time-code" error={errorAt(refusal, 'code')} />
      </Form>
    </Panel>
  );
}

/** Modules of white around the code, as the standard asks. */
const QUIET = 4;

/** A QR code of `text`, drawn here: what it says reaches nobody else. Dark on light in both themes, for the camera. */
export function QrCode({ text, label }: Readonly<{ text: string; label: string }>) {
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
