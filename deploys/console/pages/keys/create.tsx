/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import { TOO_MANY_KEYS } from '../../../accounts/keys.ts';
import type { AskedOfAccount } from '../../context.ts';
import { byOf } from '../../by.ts';
import {
  ButtonLink,
  Buttons,
  FORM_ID_FIELD,
  type FormErrors,
  formIdFrom,
  Hidden,
  newFormId,
  PostForm,
  Submit,
  TextField,
} from '../../components/forms.tsx';
import type { PageDeps } from '../../page-services.ts';
import { Panel } from '../../components/panels.tsx';
import type { Answers } from '../../router.ts';
import { seeOther } from '../../redirect.ts';
import { BAD_KEY_NAME, STALE_FORM } from './key-texts.tsx';
import { keyPath, keysPath } from '../../paths.ts';

type Deps = Pick<PageDeps, 'keys' | 'reveals' | 'random'>;

/** `/keys/new`: makes a key and leads to the page that shows it. */
export function createNewKeyPage({ keys, reveals, random }: Deps): Answers<AskedOfAccount> {
  return {
    get: (asked) => form(asked, newFormId(random)),
    post: (asked) => {
      const { account, viewer } = asked;
      const name = (asked.form.get('name') ?? '').trim();
      const once = formIdFrom(asked.form);
      if (once === undefined) return form(asked, newFormId(random), name, { form: STALE_FORM });
      const result = keys.create(account.name, name, byOf(asked).actor, once);
      switch (result.kind) {
        case 'created':
          reveals.put(viewer.userId, result.made.key, once);
          return seeOther(`${keyPath(account, result.made.id)}?shown=${once}`, 'key-created');
        case 'made-before':
          return seeOther(`${keyPath(account, result.id)}?shown=${once}`);
        case 'bad-name':
          return form(asked, once, name, { name: BAD_KEY_NAME });
        case 'too-many':
          return form(asked, once, name, { form: TOO_MANY_KEYS });
        case 'unknown-account':
          return asked.notFound();
        default:
          return unreachable(result);
      }
    },
  };
}

function form({ account, show }: AskedOfAccount, once: string, name = '', errors?: FormErrors): Response {
  const path = keysPath(account);
  return show({
    title: 'New key',
    status: errors === undefined ? 200 : 422,
    crumbs: [{ label: 'Keys', to: path }],
    body: (
      <Panel title="What is it for?">
        <PostForm action={`${path}/new`} errors={errors}>
          <Hidden name={FORM_ID_FIELD} value={once} />
          <TextField
            name="name"
            label="Name"
            hint="For you alone, such as the program or the host that will use it. It can be changed."
            value={name}
            isRequired
            maxLength={64}
            error={errors?.['name']}
          />
          <Buttons>
            <Submit kind="primary">Create the key</Submit>
            <ButtonLink to={path} kind="quiet">
              Cancel
            </ButtonLink>
          </Buttons>
        </PostForm>
      </Panel>
    ),
  });
}
