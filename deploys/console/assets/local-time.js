/* The viewer's own time in the tooltip of every time, which itself is in UTC. */
const localTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });

function addLocalTimes(root) {
  for (const time of root.querySelectorAll('time.time[datetime]')) {
    time.title = localTime.format(new Date(time.dateTime));
  }
}

addLocalTimes(document);
document.addEventListener('htmx:load', ({ target }) => addLocalTimes(target));
