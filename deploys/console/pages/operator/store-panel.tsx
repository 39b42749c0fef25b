/** @jsxImportSource preact */
import type { RedisSeen } from '../../../store/redis-seen.ts';
import type { StoreSize } from '../../../store/size.ts';
import { Badge } from '../../components/icons.tsx';
import { bytesText, latencyText } from '../../components/format.tsx';
import { Panel } from '../../components/panels.tsx';
import { Table } from '../../components/table.tsx';

type Props = Readonly<{ sizes: readonly StoreSize[]; redis: readonly RedisSeen[] | undefined }>;

/** The databases and every Redis. */
export function StorePanel({ sizes, redis }: Props) {
  return (
    <Panel title="Stores" isFlush>
      <Table
        caption="Stores"
        columns={[
          { label: 'Store', cell: ({ name }) => name, isRowHead: true },
          { label: 'State', cell: ({ state }) => state },
          { label: 'Size', align: 'end', cell: ({ size }) => size },
          { label: 'Log (WAL)', align: 'end', cell: ({ wal }) => wal },
        ]}
        rows={[...sizes.map(storeRow), ...redisRows(redis)]}
        keyOf={({ name }) => name}
        empty={null}
      />
    </Panel>
  );
}

/** A database that could not be read would have stopped the page: it is the one the page was made from. */
function storeRow({ name, bytes, walBytes }: StoreSize) {
  const state = bytes === 0 ? <Badge tone="warning">no file</Badge> : <Badge tone="good">in use</Badge>;
  return { name, state, size: bytesText(bytes), wal: bytesText(walBytes) };
}

function redisRows(redis: readonly RedisSeen[] | undefined) {
  if (redis === undefined)
    return [{ name: 'Redis', state: 'not configured: limits hold per host', size: '–', wal: '–' }];
  return redis.map((node) => ({
    name: `Redis ${node.host}`,
    state:
      node.kind === 'answers' ? (
        <>
          <Badge tone="good">answers</Badge> in {latencyText(node.tookMs)}
        </>
      ) : (
        <>
          <Badge tone="bad">cannot be reached</Badge> {node.reason}
        </>
      ),
    size: '–',
    wal: '–',
  }));
}
