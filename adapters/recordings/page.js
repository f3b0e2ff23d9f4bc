const one = (q) => document.querySelector(q);
const D = JSON.parse(one('#data').textContent), rows = [...document.querySelectorAll('tr[id]')];
const panel = one('#panel'), box = one('#filter');
const at = (id) => rows.findIndex((row) => row.id === id);
let now = -1;

const make = (tag, ...kids) => {
  const e = document.createElement(tag);
  e.append(...kids);
  return e;
};
const link = (step) => {
  const a = make('a', '#' + step);
  a.href = '#' + step;
  return a;
};
const h3 = (text) => make('h3', text);
const count = (n, word) => n + ' ' + word + (n === 1 ? '' : 's');

// A version: name, since, shown, ms, fresh fields, gone ones, whether deleted.
const fields = (o, v) => {
  const found = {};
  for (const [, , , , set, gone] of D.o[o][1].slice(0, v + 1)) {
    for (const k of gone) delete found[k];
    Object.assign(found, set);
  }
  return D.o[o][1][v]?.[6] ? {} : found;
};
const text = (v) => v === undefined ? '–' : typeof v === 'string' ? v : JSON.stringify(v);
const table = (heads, a, b) => {
  const lines = Object.keys({...a, ...b}).sort().map((k) => [k, text(a[k]), text(b[k])])
    .filter(([, x, y]) => x !== y)
    .map(([k, ...cells]) => make('tr', make('th', k), ...cells.map((c) => make('td', c))));
  return lines.length ? make('table', make('tr', ...heads.map((h) => make('th', h))), ...lines) : '';
};

// The truth beside version v, which somebody saw; -1 is none.
const beside = (o, v, t, ms, who) => {
  const [name, versions] = D.o[o], k = versions.findLastIndex((e) => e[1] <= t);
  const isGone = k < 0 || versions[k][6], isOld = k > v && !(v < 0 && isGone);
  let state = isGone ? 'it is not there' : isOld ? 'it is in version ' + versions[k][0] : 'as it is';
  if (isOld && v >= 0) {
    const s = Math.max(0, ms - versions[v + 1][3]) / 1000;
    state = count(k - v, 'revision') + ` old${s ? ` for ${s} s` : ''}: ` + state;
  }
  const p = make('p', make('b', name), v < 0 ? ' unseen ' : ` version ${versions[v][0]} `, make('mark', state));
  if (isOld) p.className = 'old';
  return [p, isOld && v >= 0 && !isGone ? table(['field', 'truth', who], fields(o, k), fields(o, v)) : ''];
};
const views = (e, t) => {
  const out = [];
  for (const a of e.a || []) {
    const [step, what, seen, end, ended] = D.a[a], newest = new Map();
    for (const [s, o, v] of seen) if (s <= t) newest.set(o, v);
    out.push(h3('The handler'), make('p', link(step), ` ${D.t[what]}; ${D.t[end]} `, ended ? link(ended) : ''),
      h3('Truth | what the handler saw'));
    for (const [o, v] of newest) out.push(...beside(o, v, t, e.m, 'handler saw'));
  }
  for (const [name, states, sights] of D.p) {
    const state = states.findLast(([s]) => s <= t), v = sights[e.o]?.findLast(([s]) => s <= t);
    out.push(h3('Process ' + name), make('p', state ? D.t[state[1]] : 'it has not started'));
    if (e.o >= 0) out.push(...beside(e.o, v ? v[1] : -1, t, e.m, name + ' saw'));
  }
  if (!out.length && e.o >= 0) {
    const v = D.o[e.o][1].findLastIndex((x) => x[2] && x[2] <= t);
    out.push(h3('Truth | what the operator saw'), ...beside(e.o, v, t, e.m, 'operator saw'));
  }
  return out;
};

const show = (i) => {
  rows[now]?.removeAttribute('aria-current');
  now = i;
  const row = rows[i], e = D.e[i];
  row.setAttribute('aria-current', 'true');
  for (let d = row; (d = d.parentElement.closest('details'));) d.open = true;
  const out = [make('h2', link(row.id), ' ', row.cells[4].textContent), ...views(e, e.t || parseInt(row.id))];
  if (e.y) {
    out.push(h3('Why'), make('ol', ...e.y.map(([depth, words, step]) => {
      const li = make('li', D.t[words] + ' ', step ? link(step) : '');
      li.style.marginLeft = depth + 'em';
      return li;
    })));
  }
  if (e.v >= 0) {
    out.push(h3('What changed'),
      table(['field', 'before', 'after'], fields(e.o, e.v - 1), fields(e.o, e.v)) || 'its version');
  }
  panel.replaceChildren(...out);
  one('aside').scrollTop = 0;
};
const go = (i) => {
  if (!rows[i]) return;
  show(i);
  history.replaceState(null, '', '#' + rows[i].id);
  rows[i].querySelector('a').focus({preventScroll: true});
  rows[i].scrollIntoView({block: 'nearest'});
};
const seek = (by, holds = () => true) => {
  let i = now + by;
  while (rows[i] && !(holds(D.e[i]) && rows[i].checkVisibility())) i += by;
  go(i);
};
const jump = () => {
  const i = at(location.hash.slice(1));
  if (i !== now) go(i);
};
const filter = () => {
  const words = box.value.toLowerCase();
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(words);
  one('#told').textContent = words && count(rows.filter((row) => !row.hidden).length, 'event');
};

const write = (e) => e.w && !(D.e[now]?.o >= 0 && D.e[now].o !== e.o);
const keys = {
  ArrowLeft: () => seek(-1), ArrowRight: () => seek(1),
  p: () => seek(-1, write), n: () => seek(1, write), '/': () => box.focus(),
};
addEventListener('keydown', (k) => {
  if (k.target === box) {
    if (k.key === 'Escape') { box.value = ''; filter(); box.blur(); }
  } else if (keys[k.key] && !(k.ctrlKey || k.metaKey || k.altKey)) {
    k.preventDefault();
    keys[k.key]();
  }
});
one('main').addEventListener('click', (k) => {
  const row = k.target.closest('tr[id]');
  if (row && !k.target.closest('a')) go(at(row.id));
});
addEventListener('hashchange', jump);
box.addEventListener('input', filter);
document.documentElement.className = 'js';
location.hash ? jump() : innerWidth > 999 && D.s >= 0 && show(D.s);
