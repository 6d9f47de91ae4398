"""What keeps instances alive between bursts: messages in, turns, commits out.

`turn` handles the messages of one instance and says, as one `Commit`, what that changed; `letters` is
how messages lie in an inbox; `children` what a parent and a child tell each other; `committer` writes the
commits of many turns together. Nothing here knows which store it is talking to, nor what an activity is.
"""
