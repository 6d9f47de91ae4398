"""What keeps instances alive between bursts: messages in, turns, commits out.

- A node: `node` is its life, `membership` and `shares` its place among others, `gate` what is paused,
  `housekeeping` and `retention` what one node does for all, `doctor` what is wrong.
- Messages on their way in: `reception` from outside, `matching` and `looks` from stimuli to whoever waits,
  `firing` and `schedules` from time, `courier` from a commit to whoever handles it. `letters` is how they lie
  in an inbox; `reader`, `positions` and `lines` bring them into memory and say whose turn it is.
- A turn: `worker` takes it, `loader` has what it begins from, `turn` handles the messages, `consequences` and
  `changes` are what it writes, `inline` and `children` what a parent has to do with it, `committer` writes
  many at once. `background` does what left the turn.
- Out of it: `results` for whoever waits, `lifecycle`, `listeners` and `relay` for whoever listens.
- What is driven: `program` is all that is asked of it, `drawn` a definition, `coded` a machine with `runs`;
  `library` finds them, `publishing` brings them in.
- `operations` is what operators do, each in a module of its own.

Nothing here knows which store it is talking to, nor what an activity is.
"""
