/** @jsxImportSource preact */
import type { ProgramShown } from '../../../programs/list.ts';
import { CheckField, RadioFields } from '../../components/forms.tsx';
import { shortened } from '../../components/code.tsx';
import type { GivenSettings } from './given.ts';

type PickerProps = Readonly<{
  given: GivenSettings;
  programs: readonly ProgramShown[];
  error?: string | undefined;
}>;

/** All programs or chosen ones. With JavaScript the list can be searched; without, it is a list to scroll. */
export function ProgramPicker({ given, programs, error }: PickerProps) {
  const chosen = new Set(given.programs);
  const unwatched = given.programs.filter(
    (address) => !programs.some(({ programId }) => programId === address),
  );
  const chosenFirst = programs.toSorted(
    (a, b) => Number(chosen.has(b.programId)) - Number(chosen.has(a.programId)),
  );
  return (
    <div class={error === undefined ? 'picker' : 'picker field-wrong'} id="programs" tabindex={-1}>
      <RadioFields
        name="programs"
        legend="Programs"
        value={given.isAll ? 'all' : 'chosen'}
        options={[
          {
            value: 'all',
            label: `All ${programs.length} watched programs`,
            hint: 'Also those that are added later.',
          },
          { value: 'chosen', label: 'Chosen programs' },
        ]}
      />
      {error !== undefined && <p class="field-error">{error}</p>}
      <div class="picker-choice">
        <div class="field script-only">
          <label for="picker-search">Search programs</label>
          <input type="search" id="picker-search" data-narrows="picker-list" autocomplete="off" />
          <p class="field-hint" data-narrowed="picker-list" role="status" />
        </div>
        <fieldset class="picker-list" id="picker-list">
          <legend class="hidden">Chosen programs</legend>
          {chosenFirst.map(({ programId, label }) => (
            <CheckField
              key={programId}
              name="program"
              value={programId}
              isChecked={chosen.has(programId)}
              label={<Name label={label} address={programId} />}
            />
          ))}
          {unwatched.map((address) => (
            <CheckField
              key={address}
              name="program"
              value={address}
              isChecked
              label={<Name label="No longer watched" address={address} />}
            />
          ))}
        </fieldset>
      </div>
    </div>
  );
}

/** The whole address can be searched for, though its ends are what is shown. */
function Name({ label, address }: Readonly<{ label: string; address: string }>) {
  return (
    <span data-text={`${label} ${address}`.toLowerCase()}>
      {label} <code class="soft">{shortened(address)}</code>
    </span>
  );
}
