// SPDX-License-Identifier: Apache-2.0 OR MIT
// The page of tdt report.  It formats what its documents say, and decides nothing: see
// report_page.c.  Texts of the target become text nodes, and never markup.
'use strict';
const documents = [...document.querySelectorAll('script[type="application/json"]')]
	.map(element => JSON.parse(element.textContent));
const documentWith = key => documents.find(each => key in each);
const facts = documentWith('report')?.report ?? {};
const recorded = documentWith('summary');
const timed = documentWith('timeline');
const main = document.getElementById('main');

/* --- Elements, and texts ---------------------------------------------------------------- */

function fill(node, properties, children) {
	for (const [key, value] of Object.entries(properties)) {
		if (key.startsWith('on'))
			node.addEventListener(key.slice(2), value);
		else
			node.setAttribute(key, value);
	}
	node.append(...children.filter(child => child != null));
	return node;
}

const make = (tag, properties = {}, ...children) =>
	fill(document.createElement(tag), properties, children);
const draw = (tag, properties = {}, ...children) =>
	fill(document.createElementNS('http://www.w3.org/2000/svg', tag), properties, children);

const count = number => Number(number).toLocaleString('en');
const counted = (number, noun) => `${count(number)} ${noun}${Number(number) === 1 ? '' : 's'}`;

function duration(ns) {
	ns = Number(ns);
	for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]])
		if (ns >= size)
			return (ns / size).toFixed(ns < size * 10 ? 3 : ns < size * 100 ? 2 : 1) +
				` ${unit}`;
	return `${ns} ns`;
}

function moment(ns) {
	const date = new Date(Number(ns) / 1e6);

	return isNaN(date) ? 'an unknown time'
		: date.toISOString().replace('T', ' ').replace('Z', ' UTC');
}

const named = task => task.name === undefined ? `${task.id}` : `${task.id} "${task.name}"`;
const place = at => at.file === undefined ? '' : at.file + (at.line ? `:${at.line}` : '');

/* What a wait is for, in few words. */
function waited(wait) {
	const name = wait.name !== undefined ? `"${wait.name}"` : wait.object ?? '';
	const owner = wait.owner === undefined ? ''
		: ` of task ${named({ id: wait.owner, name: wait.owner_name })}`;
	return `${wait.kind} ${name}${owner}`.trim();
}

function section(id, title, ...children) {
	document.getElementById('nav').append(make('a', { href: `#${id}` }, title), ' ');
	main.append(make('h2', { id, tabindex: -1 }, title), ...children);
}

const taskLink = (id, text = `${id}`) => make('a', { href: `#task-${id}` }, text);

/* The text of tdt, in which tasks are links. */
function withLinks(text) {
	return text.split(/(\btask \d+)/).map((part, i) =>
		i % 2 ? taskLink(part.slice(5), part) : part);
}

/* Shows the first entries of a list, and more of them when they are wanted. */
function pages(list, box, size, show) {
	let shown = 0;
	const more = make('button', { type: 'button', onclick: () => grow(shown + size) });

	function grow(until) {
		const rows = list.slice(shown, until).map((entry, i) => show(entry, shown + i));

		shown = Math.max(shown, Math.min(until, list.length));
		box.append(...rows);
		more.textContent = `${count(shown)} of ${count(list.length)} are shown: show more`;
		more.hidden = shown >= list.length;
	}
	grow(size);
	return { more, reveal: index => index >= shown && grow(index + size) };
}

/* A table whose rows are arrays of texts, numbers (right) and nodes. */
function table(titles, rows) {
	const cell = value => make('td', typeof value === 'number' ? { class: 'number' } : {},
				   typeof value === 'number' ? count(value) : value ?? '');

	return make('div', { class: 'wide' }, make('table', {},
		make('thead', {}, make('tr', {}, ...titles.map(title => make('th', {}, title)))),
		make('tbody', {}, ...rows.map(row => make('tr', {}, ...row.map(cell))))));
}

/* --- What the documents have -------------------------------------------------------------- */

/* The groups of all dumps, with the lines of each, in the order in which parents come first. */
const groups = [];
/* Of all groups: what they say of one task. */
const tasks = [];
/* The tasks that wait for each other. */
const ringed = new Map();
const headings = [];

function addGroup(group, lines, depth, dump) {
	const entry = { group, lines, depth, index: groups.length };

	groups.push(entry);
	group.tasks.forEach((task, i) => tasks.push({
		task, entry, dump, waits: lines.waits[i],
		text: `${task.id} ${task.name ?? ''} ${task.state} ${lines.waits[i]} ${place(task)}`
			.toLowerCase(),
	}));
}

/* Parents come first; groups below each other in a ring, last. */
function addGroups(dump, lines) {
	const roots = [], below = dump.groups.map(() => []), done = new Set(), stack = [];
	const push = (list, depth) => list.reverse().forEach(i => stack.push([i, depth]));

	dump.groups.forEach((group, i) => {
		const nested = group.below < dump.groups.length && !('deadlock' in group);

		(nested ? below[group.below] : roots).push(i);
	});
	push([...dump.groups.keys()], 0);
	push(roots, 0);
	while (stack.length > 0) {
		const [i, depth] = stack.pop();

		if (done.has(i))
			continue;
		done.add(i);
		addGroup(dump.groups[i], lines.lines[i], depth, dump);
		push(below[i], depth + 1);
	}
	for (const kind of ['before', 'panics'])
		(dump[kind] ?? []).forEach((group, i) =>
			groups.push({ group, lines: lines[kind][i], depth: 0, index: groups.length,
				      past: true }));
}

documents.forEach((dump, i) => {
	if (!('dump' in dump))
		return;
	headings.push(documents[i + 1].heading);
	addGroups(dump, documents[i + 1]);
	for (const kind of ['rings', 'unproven', 'deadlocks'])
		for (const ring of dump[kind])
			ring.forEach(id => ringed.set(String(id), kind));
});
const byId = new Map(tasks.map(each => [String(each.task.id), each]).reverse());

/* --- Verdicts ----------------------------------------------------------------------------- */

function verdictLine(line, i) {
	const at = /^\S/.test(line) && i > 0 ? line.indexOf(':') : -1;

	return at < 0 ? [...withLinks(line), '\n']
		: [make('span', { class: 'bad' }, line.slice(0, at)),
		   ...withLinks(line.slice(at)), '\n'];
}

function showVerdicts() {
	const title = `${facts.program ?? 'a program'}, process ${facts.pid}` +
		(facts.made_real_ns ? `, ${moment(facts.made_real_ns)}` : '');

	document.title = `tdt report: ${title}`;
	document.getElementById('title').textContent = title;
	section('verdicts', 'Verdicts', ...headings.map(heading => {
		const lines = heading.trim().split('\n');

		return make('pre', { class: lines.length > 1 ? 'verdicts' : 'verdicts fine' },
			    ...lines.flatMap(verdictLine));
	}));
	const left = [...facts.left_out ?? []];
	if (timed?.timeline.left_out)
		left.push(`the ${count(timed.timeline.left_out)} oldest phases of the timeline`);
	if (timed?.timeline.by_kind)
		left.push(`what ${counted(timed.timeline.by_kind, 'wait')} of the timeline ` +
			'were for, but for the kind');
	if (left.length > 0)
		main.append(make('p', { class: 'soft' },
				 `Left out, since there was no room: ${left.join('; ')}.`));
	if (facts.redacted)
		main.append(make('p', { class: 'soft' },
				 'Names, paths and addresses are replaced, the same by the same.'));
}

/* --- Tasks -------------------------------------------------------------------------------- */

const columns = [
	{ title: 'ID', key: each => Number(each.task.id), show: each => taskLink(each.task.id) },
	{ title: 'Name', key: each => each.task.name ?? '' },
	{ title: 'State', key: each => each.task.state },
	{ title: 'For', key: each => Number(each.task.state_ns),
	  show: each => duration(each.task.state_ns), number: true },
	{ title: 'Polls', key: each => Number(each.task.polls), number: true,
	  show: each => count(each.task.polls) },
	{ title: 'Waits for', key: each => each.waits },
	{ title: 'Spawned at', key: each => place(each.task) },
];

function choice(label, values, change) {
	const counts = new Map();

	for (const value of values)
		counts.set(value, (counts.get(value) ?? 0) + 1);
	return make('label', {}, `${label} `, make('select', { onchange: change },
		make('option', { value: '' }, 'all'),
		...[...counts].sort().map(([value, n]) =>
			make('option', { value }, `${value} (${count(n)})`))));
}

const waitKind = each => each.task.waits?.[0]?.kind ?? 'nothing known';

function showTasks() {
	const box = make('div'), found = make('span', { class: 'soft', role: 'status' });
	const search = make('input', { type: 'search', id: 'search', oninput: update,
				       'aria-label': 'Search tasks',
				       placeholder: 'id, name, wait or place' });
	const state = choice('State', tasks.map(each => each.task.state), update);
	const wait = choice('Waits for', tasks.map(waitKind), update);
	let by = columns[0], falling = false;

	function heading(column) {
		const sorted = column === by
			? { 'aria-sort': falling ? 'descending' : 'ascending' } : {};
		const press = () => {
			falling = column === by ? !falling : column.number === true;
			by = column;
			update();
			box.querySelector('[aria-sort] button').focus();
		};

		return make('th', { scope: 'col', ...sorted },
			    make('button', { type: 'button', onclick: press }, column.title));
	}

	function row(each) {
		return make('tr', {}, ...columns.map(column =>
			make('td', column.number ? { class: 'number' } : {},
			     (column.show ?? column.key)(each))));
	}

	function update() {
		const words = search.value.toLowerCase().split(/\s+/).filter(word => word !== '');
		const chosen = [state, wait].map(label => label.querySelector('select').value);
		const list = tasks.filter(each =>
			words.every(word => each.text.includes(word)) &&
			(chosen[0] === '' || each.task.state === chosen[0]) &&
			(chosen[1] === '' || waitKind(each) === chosen[1]));
		const body = make('tbody');

		list.sort((a, b) => {
			const x = by.key(a), y = by.key(b);

			return (x < y ? -1 : x > y ? 1 : 0) * (falling ? -1 : 1);
		});
		found.textContent = `${count(list.length)} of ${counted(tasks.length, 'task')}`;
		box.replaceChildren(make('div', { class: 'wide' }, make('table', { id: 'table' },
			make('thead', {}, make('tr', {}, ...columns.map(heading))), body)),
			pages(list, body, 50, row).more);
	}
	section('tasks', 'Tasks', make('div', { class: 'bar' }, search, state, wait, found), box);
	update();
}

/* --- Trees -------------------------------------------------------------------------------- */

const deepest = 200; /* rows below stand there, too */

/* The rows of a tree.  A row with others below it closes. */
function treeOf(rows) {
	const tree = make('div', { class: 'tree' }), path = [tree];

	rows.forEach(([depth, text, , times], i) => {
		const line = text + (times > 1 ? ` ×${times}` : ''), at = Math.min(depth, deepest);

		path[at] = rows[i + 1]?.[0] > depth && depth < deepest
			? make('details', { open: '' }, make('summary', {}, line))
			: make('div', {}, line);
		path[at - 1].append(path[at]);
	});
	return tree;
}

function showGroup(entry) {
	const { group, lines, depth, index } = entry;
	const [head, ...rest] = lines.head.trimEnd().split('\n');
	const body = make('div'), tree = make('div');
	const full = make('input', { type: 'checkbox', onchange: fillTree });
	const details = make('details', { id: `group-${index}`, ontoggle: open },
		make('summary', { class: 'mono' }, head), body);

	function fillTree() {
		tree.replaceChildren(treeOf(full.checked ? lines.full : lines.tree));
	}

	function open() {
		if (!details.open || body.firstChild !== null)
			return;
		body.append(...rest.map(line => make('pre', {}, ...withLinks(line))));
		if (lines.tree !== undefined) {
			body.append(make('label', { class: 'soft' }, full,
					 ' all calls, also of libraries'), tree);
			fillTree();
		}
		if (group.tasks.length > 1) {
			const ids = make('p', { class: 'mono' });
			const list = pages(group.tasks, ids, 100, task => `${named(task)}  `);

			body.append(ids, list.more);
		}
	}
	details.style.marginLeft = `${Math.min(depth, 30) * 1.5}em`;
	details.open = 'deadlock' in group;
	return details;
}

let groupPages;

function showTrees() {
	const box = make('div');

	groupPages = pages(groups, box, 200, showGroup);
	section('trees', 'Trees', make('div', { class: 'bar' },
		make('button', { type: 'button', id: 'open', onclick: () => {
			const closed = [...box.querySelectorAll(':scope > details:not([open])')];

			for (const details of closed.length > 0 ? closed : box.children)
				details.open = closed.length > 0;
		} }, 'Open or close all that are shown')), box, groupPages.more);
}

/* Follow a link to a task: to the group that it is in. */
function follow() {
	const id = /^#task-(\d+)$/.exec(location.hash)?.[1];
	const entry = byId.get(id)?.entry;

	if (entry === undefined)
		return;
	groupPages.reveal(entry.index);
	for (const marked of document.querySelectorAll('.found'))
		marked.classList.remove('found');
	const details = document.getElementById(`group-${entry.index}`);
	details.open = true;
	details.classList.add('found');
	details.querySelector('summary').focus();
	details.scrollIntoView();
}

/* --- Who waits for whom ------------------------------------------------------------------- */

const waitersShown = 12, nodesShown = 300;

/* Where each node stands: those that wait for it stand right of it, and below each other. */
function layOut(waiters, roots) {
	const at = new Map();
	let row = -1;

	for (const root of roots) {
		const stack = [[root, 0, false]];

		while (stack.length > 0 && at.size < nodesShown) {
			const [id, column, first] = stack.pop();

			if (at.has(id))
				continue;
			const next = (waiters.get(id) ?? []).filter(other =>
				!at.has(other) && other !== id);
			row += first ? 0 : 1;
			at.set(id, { column, row, more: next.length - waitersShown });
			next.slice(0, waitersShown).map((other, i) => [other, column + 1, i === 0])
				.reverse().forEach(each => stack.push(each));
		}
	}
	return at;
}

function graphNode(id, { column, row, more }) {
	const known = byId.get(id), x = column * 300 + 4, y = row * 54 + 4;
	const cut = text => text.length > 32 ? `${text.slice(0, 31)}…` : text;
	const name = known !== undefined ? named(known.task) : id;
	const state = known === undefined ? 'not in the dump'
		: `${known.task.state} ${duration(known.task.state_ns)}`;

	return draw('a', { href: `#task-${id}`,
			   class: ringed.get(id) === 'deadlocks' ? 'ring' : '' },
		draw('title', {}, `task ${name}, ${state}` +
			(known?.waits ? `, waits for ${known.waits}` : '')),
		draw('rect', { x, y, width: 240, height: 40, rx: 5 }),
		draw('text', { x: x + 8, y: y + 16 }, cut(name)),
		draw('text', { x: x + 8, y: y + 32 },
		     cut(more > 0 ? `${state}, and ${count(more)} more wait` : state)));
}

function graphEdge(from, to, ring) {
	const y1 = from.row * 54 + 24, y2 = to.row * 54 + 24;
	const x1 = from.column * 300 + 4, x2 = to.column * 300 + 244;
	const line = x1 > x2 ? `M${x1},${y1} C${x1 - 28},${y1} ${x2 + 28},${y2} ${x2 + 2},${y2}`
		: `M${x1 + 120},${y1 + 20} C${x1 + 120},${Math.max(y1, y2) + 48} ${x2 - 120},` +
			`${Math.max(y1, y2) + 48} ${x2 - 120},${y2 + 22}`;

	return draw('path', { d: line, class: ring ? 'ring' : '', 'marker-end': 'url(#arrow)' });
}

function showGraph() {
	const waiters = new Map(), edges = [], waiting = new Set();

	for (const { task } of tasks)
		for (const to of new Set((task.waits ?? []).map(wait => wait.owner))) {
			if (to === undefined)
				continue;
			if (!waiters.has(`${to}`))
				waiters.set(`${to}`, []);
			waiters.get(`${to}`).push(`${task.id}`);
			edges.push([`${task.id}`, `${to}`]);
			waiting.add(`${task.id}`);
		}
	if (edges.length === 0) {
		section('graph', 'Who waits for whom',
			make('p', {}, 'No task is known to wait for another.'));
		return;
	}
	const owners = [...waiters.keys()].sort((a, b) =>
		(ringed.has(b) - ringed.has(a)) || waiting.has(a) - waiting.has(b) ||
		waiters.get(b).length - waiters.get(a).length);
	const at = layOut(waiters, owners);
	const all = new Set(edges.flat()).size;
	const width = Math.max(...[...at.values()].map(node => node.column)) * 300 + 260;
	const height = Math.max(...[...at.values()].map(node => node.row)) * 54 + 80;

	section('graph', 'Who waits for whom',
		make('p', { class: 'soft' }, 'An arrow leads to the task that is waited for.' +
			(at.size < all ? ` ${count(at.size)} of ${counted(all, 'task')} are shown.` : '')),
		make('div', { class: 'wide' }, draw('svg', { width, height, role: 'group',
			'aria-label': `${counted(edges.length, 'wait')} between tasks` },
			draw('marker', { id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4,
					 markerWidth: 7, markerHeight: 7, orient: 'auto' },
			     draw('path', { d: 'M0,0 L8,4 L0,8 z' })),
			...edges.filter(([from, to]) => at.has(from) && at.has(to)).map(([from, to]) =>
				graphEdge(at.get(from), at.get(to),
					  ringed.has(from) && ringed.has(to))),
			...[...at].map(([id, node]) => graphNode(id, node)))));
}

/* --- Places ------------------------------------------------------------------------------- */

/* How many leaves of all tasks wait at and below each place. */
function sumPlaces(full) {
	const root = { text: 'all leaves', leaves: 0, below: new Map(), depth: 0 };

	for (const { group, lines } of groups.filter(each => !each.past)) {
		const rows = (full ? lines.full : lines.tree) ?? [], path = [root], times = [1];

		for (const [depth, text, leaves, same] of rows) {
			const above = path[depth - 1];
			let node = above.below.get(text);

			if (node === undefined) {
				node = { text, leaves: 0, below: new Map(), depth, above };
				above.below.set(text, node);
			}
			path[depth] = node;
			times[depth] = times[depth - 1] * same;
			for (let i = 0; i <= depth; i++)
				path[i].leaves += leaves * times[depth] * group.tasks.length;
		}
	}
	return root;
}

function showPlaces() {
	const box = make('div', { class: 'flame', id: 'flame' });
	const full = make('input', { type: 'checkbox',
				     onchange: () => show(sumPlaces(full.checked)) });
	let all;

	function show(root, chosen = root) {
		const stack = [[chosen, 0, 1]];
		let lowest = 0;

		all = root;
		box.replaceChildren();
		for (let node = chosen.above; node !== undefined; node = node.above)
			box.prepend(bar(node, 0, 1));
		while (stack.length > 0) {
			const [node, at, width] = stack.pop();
			let next = at;

			box.append(bar(node, at, width));
			lowest = Math.max(lowest, node.depth);
			const below = [...node.below.values()].sort((a, b) => b.leaves - a.leaves);
			for (const child of below) {
				const share = width * child.leaves / node.leaves;

				if (share > 0.002)
					stack.push([child, next, share]);
				next += share;
			}
		}
		box.style.height = `${(lowest + 1) * 20}px`;
	}

	function bar(node, at, width) {
		const title = `${node.text}: ${count(node.leaves)} of ${count(all.leaves)}`;
		const button = make('button', { type: 'button', title, onclick: () => {
			show(all, node);
			[...box.children].find(each => each.title === title).focus();
		} }, node.text);

		button.style.left = `${at * 100}%`;
		button.style.width = `${width * 100}%`;
		button.style.top = `${node.depth * 20}px`;
		return button;
	}

	show(sumPlaces(false));
	if (all.leaves > 0)
		section('places', 'Places where tasks wait', make('div', { class: 'bar' },
			make('label', {}, full, ' all calls, also of libraries'),
			make('span', { class: 'soft' },
			     'The width is the number of leaves.  Enter or a click shows one place.')), box);
}

/* --- Timeline ----------------------------------------------------------------------------- */

/* A row has spans, from `from` to `until`: those of the threads are the polls of all tasks. */
function timelineRows() {
	const polls = timed.threads.map(() => []);
	const rows = timed.tasks.map(task => {
		const label = named(task), spans = [];

		for (let i = 0, from = task.at_ns, until; i < task.spans.length; i += 2, from = until) {
			const what = timed.what[task.spans[i + 1]];

			until = from + task.spans[i];
			if (what !== undefined)
				spans.push({ from, until, what });
			if (what?.thread !== undefined)
				polls[what.thread].push({ from, until, what, polled: label });
		}
		return { label, spans };
	});
	const workers = timed.threads.map(({ id, name }, i) => ({
		label: `${name ?? 'thread'} ${id}`, worker: true,
		spans: polls[i].sort((a, b) => a.from - b.from),
	}));

	return [...workers.filter(row => row.spans.length > 0), ...rows];
}

/* The number of the first span of a row that ends behind a time. */
function firstSpan({ spans }, time) {
	let low = 0, high = spans.length;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (spans[middle].until > time)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* What a span was, in few words. */
function spanWords({ what, polled }) {
	return polled !== undefined ? polled
		: what.kind === undefined ? what.phase
		: waited(what) + (what.waits > 1 ? ` and ${what.waits - 1} more` : '');
}

const phases = ['polling', 'runnable', 'waiting', 'spawned'];
const rowHeight = 17, labelWidth = 200, rowsShown = 28;

function showTimeline() {
	const all = timelineRows(), length = timed.timeline.end_ns - timed.timeline.start_ns;
	const canvas = make('canvas', { id: 'timeline', tabindex: 0, role: 'img', onkeydown: key,
		'aria-label': 'Timeline: arrows move, plus and minus zoom, 0 shows all' });
	const said = make('p', { class: 'mono', role: 'status' }, ' ');
	const filter = make('input', { type: 'search', oninput: choose,
				       'aria-label': 'Tasks of the timeline',
				       placeholder: 'only tasks with this text' });
	const colors = getComputedStyle(document.documentElement);
	let rows = all, top = 0, from = 0, until = length, drag;

	function paint() {
		const scale = window.devicePixelRatio, width = canvas.clientWidth;
		const height = Math.min(rowsShown, rows.length) * rowHeight + 20;
		const context = canvas.getContext('2d'), x = time =>
			labelWidth + (time - from) / (until - from) * (width - labelWidth);
		const color = Object.fromEntries(['text', ...phases].map(name =>
			[name, colors.getPropertyValue(`--${name}`)]));

		canvas.style.height = `${height}px`;
		canvas.width = width * scale;
		canvas.height = height * scale;
		canvas.dataset.from = from;
		canvas.dataset.until = until;
		context.scale(scale, scale);
		context.font = '11px ui-monospace, monospace';
		context.textBaseline = 'middle';
		context.fillStyle = color.text;
		for (let i = 0; i <= 4; i++) {
			const time = from + (until - from) * i / 4;

			context.textAlign = i === 4 ? 'right' : 'left';
			context.fillText(duration(Math.round(time)), i === 4 ? width - 2 : x(time), 9);
		}
		context.textAlign = 'left';
		rows.slice(top, top + rowsShown).forEach((row, k) =>
			paintRow(context, row, 20 + k * rowHeight, x, width, color));
	}

	function paintRow(context, row, y, x, width, color) {
		let last = labelWidth;

		context.fillStyle = color.text;
		context.fillText(row.label.slice(0, 29), 2, y + rowHeight / 2);
		for (let i = firstSpan(row, from); row.spans[i]?.from < until; i++) {
			const span = row.spans[i], left = Math.max(x(span.from), labelWidth);
			const right = Math.min(x(span.until), width), wide = Math.max(right - left, 1);

			if (right < last) /* the span before has this pixel */
				continue;
			context.fillStyle = color[span.what.phase];
			context.globalAlpha = span.what.unsure ? 0.5 : 1;
			context.fillRect(left, y + 1, wide - (wide > 4 ? 1 : 0), rowHeight - 2);
			context.globalAlpha = 1;
			context.fillStyle = color.text;
			if (wide > 60)
				context.fillText(spanWords(span).slice(0, wide / 6.7 - 1), left + 3,
						 y + rowHeight / 2);
			last = left + wide;
		}
	}

	/* Show a part; what is outside of the recording is not shown. */
	function view(start, end) {
		const span = Math.min(Math.max(end - start, 100), length);

		from = Math.min(Math.max(start, 0), length - span);
		until = from + span;
		paint();
	}

	function zoom(factor, at = (from + until) / 2) {
		view(at - (at - from) * factor, at + (until - at) * factor);
	}

	function scroll(by) {
		top = Math.max(0, Math.min(top + by, rows.length - rowsShown));
		paint();
	}

	function key(event) {
		const step = (until - from) / 4;
		const deeds = {
			'+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2),
			'0': () => view(0, length),
			ArrowLeft: () => view(from - step, until - step),
			ArrowRight: () => view(from + step, until + step),
			ArrowUp: () => scroll(-1), ArrowDown: () => scroll(1),
			PageUp: () => scroll(-rowsShown), PageDown: () => scroll(rowsShown),
			Home: () => view(0, until - from),
			End: () => view(length - (until - from), length),
		};

		if (event.ctrlKey || event.metaKey || deeds[event.key] === undefined)
			return;
		event.preventDefault();
		deeds[event.key]();
	}

	function choose() {
		const text = filter.value.toLowerCase();

		rows = all.filter(row => row.worker || row.label.toLowerCase().includes(text));
		top = 0;
		paint();
	}

	const timeAt = event => from + (until - from) * (event.offsetX - labelWidth) /
		(canvas.clientWidth - labelWidth);

	canvas.addEventListener('wheel', event => {
		event.preventDefault();
		if (event.shiftKey || event.ctrlKey)
			zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, timeAt(event));
		else
			scroll(event.deltaY > 0 ? 3 : -3);
	}, { passive: false });
	canvas.addEventListener('pointerdown', event => drag = timeAt(event));
	canvas.addEventListener('pointerup', event => {
		const end = timeAt(event);

		if (drag !== undefined && Math.abs(end - drag) > (until - from) / 100)
			view(Math.min(drag, end), Math.max(drag, end));
		drag = undefined;
	});
	canvas.addEventListener('pointermove', event => {
		const row = rows[top + Math.floor((event.offsetY - 20) / rowHeight)];
		const time = timeAt(event);
		const span = row?.spans[firstSpan(row, time)];

		said.textContent = span === undefined || span.from > time || time < from ? ' '
			: `${row.label}: ${span.what.phase} ${spanWords(span)}` +
				`${span.what.unsure ? ' (unsure)' : ''} for ` +
				`${duration(span.until - span.from)}, from ${duration(span.from)} on`;
	});
	section('timeline-of', 'Timeline',
		make('div', { class: 'bar' }, filter,
		     make('button', { type: 'button', onclick: () => zoom(0.5) }, 'Zoom in'),
		     make('button', { type: 'button', onclick: () => zoom(2) }, 'Zoom out'),
		     make('button', { type: 'button', onclick: () => view(0, length) }, 'All'),
		     ...phases.map(phase =>
			     make('span', { class: `key ${phase}` }, phase))),
		make('p', { class: 'soft' },
		     `${duration(length)} until ${moment(timed.timeline.end_real_ns)}.  Keys: arrows, ` +
		     '+ and -, 0 for all.  The wheel scrolls, and zooms with Ctrl or Shift; a drag ' +
		     'zooms to what it spans.'),
		canvas, said);
	paint();
	window.addEventListener('resize', paint);
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paint);
}

/* --- Latencies, and what else the recording sums up ---------------------------------------- */

const going = each => duration(each.ns) + (each.going_on ? ', going on' : '');
const longest = each => [going(each), waited({ ...each, owner: each.owner?.id,
					       owner_name: each.owner?.name }),
			 each.waits, duration(each.total_ns)];
const waitTitles = ['Waited', 'For', 'Times', 'In all'];
/* Of each list: its key, its title, the titles of its columns behind that of the task, and these. */
const sums = [
	['latency', 'Latencies: from a wake-up to the poll', ['Polls', 'Median', '99 %', 'Most'],
	 each => [each.polls, ...[each.median_ns, each.p99_ns, each.most_ns].map(duration)]],
	['slow_polls', 'Slow polls', ['Took', 'Thread'], each => [going(each), `${each.thread}`]],
	['waits', 'Longest waits', waitTitles, longest],
	['locks', 'Longest waits for locks', waitTitles, longest],
	['starved', 'Starved', ['Runnable for', 'Behind', 'Times'],
	 each => [duration(each.ns), each.behind ? named(each.behind) : '', each.times]],
	['busy', 'Busiest', ['Polls', 'Polled for'], each => [each.polls, duration(each.ns)]],
];

function showSums() {
	section('latencies', 'Latencies');
	for (const [key, title, titles, row] of sums)
		if (recorded[key]?.length > 0)
			main.append(make('h3', {}, title), table(['Task', ...titles],
				recorded[key].slice(0, 20).map(each => [
					named(each.task) + (each.several ? ' and others of its name' : ''),
					...row(each)])));
}

/* --- The process -------------------------------------------------------------------------- */

function showFacts() {
	const list = [
		['From', facts.of], ['Program', facts.program], ['Process', facts.pid],
		['libtdt', facts.library], ['tdt', facts.version],
		['Started', facts.start_real_ns && moment(facts.start_real_ns)],
		['This page', facts.made_real_ns && moment(facts.made_real_ns)],
		['Kernel', facts.kernel], ['Machine', facts.machine], ['Ended', facts.ended],
	];

	section('process', 'Process', make('dl', {}, ...list.filter(each => each[1] !== undefined)
		.flatMap(([term, value]) => [make('dt', {}, term), make('dd', {}, `${value}`)])));
	const more = (title, body) => make('details', {}, make('summary', {}, title), body);
	main.append(more(`Modules (${count(facts.modules.length)})`, table(['Path', 'Build-id'],
		facts.modules.map(each => [each.path, each.build_id]))));
	if (facts.limits !== undefined)
		main.append(more('Limits', make('pre', {}, facts.limits)));
	main.append(make('p', { class: 'soft' }, 'The page has its data as JSON: tdt print and ' +
		'tdt diff read this file.'));
}

showVerdicts();
showTasks();
showTrees();
showGraph();
showPlaces();
if (timed !== undefined)
	showTimeline();
if (recorded !== undefined)
	showSums();
showFacts();
window.addEventListener('hashchange', follow);
follow();
