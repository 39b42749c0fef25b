/** @jsxImportSource preact */
import type { Plan } from '../../../../shared/config/plans.ts';
import type { Account } from '../../../accounts/account-row.ts';
import {
  Buttons,
  type FormErrors,
  Hidden,
  PostForm,
  SelectField,
  Submit,
  TextField,
} from '../../components/forms.tsx';
import { countText } from '../../components/format.tsx';
import { accountPath } from '../../paths.ts';
import { NO_PLAN, planOptions } from './plan-words.ts';

/** One of the page's forms as it was sent, with what is wrong with it. */
export type Filling = Readonly<{
  of: 'plan' | 'credits' | 'name' | 'user';
  form: URLSearchParams;
  errors: FormErrors;
}>;

type FormProps = Readonly<{ account: Account; filling: Filling | undefined }>;

/** What was sent with a form, and its errors, if it is this form. */
export function filled(of: Filling['of'], filling: Filling | undefined) {
  const own = filling?.of === of ? filling : undefined;
  return {
    errors: own?.errors,
    errorOf: (name: string) => own?.errors[name],
    sent: (name: string) => own?.form.get(name) ?? undefined,
  };
}

/** Puts the account on another plan. */
export function PlanForm({
  account: { id, plan },
  plans,
  filling,
}: FormProps & Readonly<{ plans: ReadonlyMap<string, Plan> }>) {
  const { errors, errorOf } = filled('plan', filling);
  return (
    <PostForm action={`${accountPath(id)}/plan`} errors={errors} label="Change plan">
      <SelectField
        name="plan"
        label="Plan"
        value={plan ?? NO_PLAN}
        options={planOptions(plans, plan)}
        hint="What was spent stays spent. It holds within a second."
        error={errorOf('plan')}
      />
      <Buttons>
        <Submit>Change plan</Submit>
      </Buttons>
    </PostForm>
  );
}

const ONCE_BYTES = 16;

/** Adds credits. The form has a name of its own, so that it adds once however often it is sent. */
export function CreditsForm({
  account: { id, creditsLeft },
  random,
  filling,
}: FormProps & Readonly<{ random(bytes: number): Uint8Array }>) {
  const { errors, errorOf, sent } = filled('credits', filling);
  if (creditsLeft === undefined && errors === undefined)
    return <p>This plan has no credit limit, so there is nothing to add to.</p>;
  return (
    <PostForm action={`${accountPath(id)}/credits`} errors={errors} label="Add credits">
      <TextField
        name="credits"
        label="Credits"
        value={sent('credits')}
        inputMode="numeric"
        isRequired
        placeholder="250,000"
        hint={creditsLeft === undefined ? undefined : `${countText(creditsLeft)} are left now.`}
        error={errorOf('credits')}
      />
      <TextField
        name="reason"
        label="Reason"
        value={sent('reason')}
        isRequired
        maxLength={200}
        hint="It stands in the audit log."
        error={errorOf('reason')}
      />
      <Buttons>
        <Submit>Add credits</Submit>
      </Buttons>
      <Hidden name="once" value={sent('once') ?? Buffer.from(random(ONCE_BYTES)).toString('hex')} />
    </PostForm>
  );
}

/** Gives the account another name. */
export function NameForm({ account: { id, name }, filling }: FormProps) {
  const { errors, errorOf, sent } = filled('name', filling);
  return (
    <PostForm action={`${accountPath(id)}/rename`} errors={errors} label="Rename">
      <TextField
        name="name"
        label="Name"
        value={sent('name') ?? name}
        isRequired
        maxLength={64}
        error={errorOf('name')}
      />
      <Buttons>
        <Submit>Rename</Submit>
      </Buttons>
    </PostForm>
  );
}
